/* The facts about the objects of a process (facts.def), as structs and as JSON. A library fills a struct under the
 * object's lock (fill.h) and writes it; a tool reads it back (tools/facts). A fact that is not known is not written. */
#ifndef FACTS_FACTS_H
#define FACTS_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "facts/facts.def"

/* A number of any unit. One that can be below 0 (SIGNED) is kept as its complement of two. */
struct fact_number {
    uint64_t value; /* 0: not known */
    bool known;
};

struct fact_flag {
    bool value, known;
};

/* Another object, a list or a map: whoever fills the struct has a function that writes it; NULL: not known. In a tool
 * `of` is the value of JSON. */
struct fact_inner {
    void (*write)(FILE *, const void *of);
    const void *of;
};

/* The forms of facts, each with the type of its member. */
enum fact_form {
    FACT_NUMBER,  /* of 32 bits */
    FACT_SIGNED,  /* of 32 bits */
    FACT_ID,      /* wr_id: any 64 bits */
    FACT_QPN,     /* number of a queue pair */
    FACT_KEY,     /* lkey or rkey */
    FACT_ADDRESS, /* of memory */
    FACT_ACCESS,  /* enum ibv_access_flags */
    FACT_BYTES,
    FACT_TIME, /* nanoseconds since 1970 */
    FACT_SECONDS,
    FACT_PID,
    FACT_HEX,     /* a number that is written as a string, 0x1a2b */
    FACT_FLAG,    /* a boolean */
    FACT_WORD,    /* a text of ours, which is written as it is */
    FACT_TEXT,    /* a text of others (diag/clean.h) */
    FACT_INNER,   /* LIST, MAP and ONE */
    FACT_MEMBERS, /* several members with other keys */
    FACT_COUNT,   /* of 64 bits */
};

#define FACT_TYPE_NUMBER struct fact_number
#define FACT_TYPE_SIGNED struct fact_number
#define FACT_TYPE_ID struct fact_number
#define FACT_TYPE_QPN struct fact_number
#define FACT_TYPE_KEY struct fact_number
#define FACT_TYPE_ADDRESS struct fact_number
#define FACT_TYPE_ACCESS struct fact_number
#define FACT_TYPE_BYTES struct fact_number
#define FACT_TYPE_TIME struct fact_number
#define FACT_TYPE_SECONDS struct fact_number
#define FACT_TYPE_PID struct fact_number
#define FACT_TYPE_HEX struct fact_number
#define FACT_TYPE_COUNT struct fact_number
#define FACT_TYPE_FLAG struct fact_flag
#define FACT_TYPE_WORD const char *
#define FACT_TYPE_TEXT const char *
#define FACT_TYPE_LIST(of) struct fact_inner
#define FACT_TYPE_MAP(of) struct fact_inner
#define FACT_TYPE_ONE(of) struct fact_inner
#define FACT_TYPE_MEMBERS struct fact_inner

#define FACT_LIST(of) FACT_INNER
#define FACT_MAP(of) FACT_INNER
#define FACT_ONE(of) FACT_INNER

/* Whether a value of this form is for its own program and user alone: an address, a key, a tag or a wr_id. */
static inline bool fact_form_is_own(enum fact_form form)
{
    return form == FACT_ADDRESS || form == FACT_KEY || form == FACT_ID || form == FACT_HEX;
}

/* A line of the list. */
struct fact {
    const char *name;
    enum fact_form form;
    uint32_t at; /* the offset of the member */
};

/* The lines about one kind of object. */
struct facts_kind {
    const char *name;
    const struct fact *facts;
    uint32_t count, size; /* of lines; of the struct */
};

/* struct facts_qp and so on. One is all zero at first: nothing is known. Its texts are the filler's and must outlive
 * it.
 */
#define FACT_MEMBER(kind, name, form, source, when, meaning) FACT_TYPE_##form name;
#define FACTS_DECLARE(kind, chapter, of)                                                                               \
    struct facts_##kind {                                                                                              \
        FACTS_##kind(FACT_MEMBER)                                                                                      \
    };                                                                                                                 \
    extern const struct facts_kind facts_of_##kind;
FACTS_KINDS(FACTS_DECLARE)

/* All kinds, in the order of the list; NULL: no more. */
const struct facts_kind *facts_kind(size_t i);

/* Writes one object of JSON with what is known. `facts`: the struct of the kind. */
void facts_write(FILE *, const struct facts_kind *, const void *facts);

#endif
