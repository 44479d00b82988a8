/* The facts about the objects of a process (facts.def), as structs and as JSON. A library fills a struct under the
 * object's lock (fill.h) and writes it; a tool reads it back (tools/facts). A fact that is not known is not written. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "facts/facts.def"

/* A number of any unit. A number below 0 (SIGNED) is kept as its complement of two. */
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
#define FACT_FORMS(FORM)                                                                                               \
    FORM(NUMBER, struct fact_number)  /* of 32 bits */                                                                 \
    FORM(SIGNED, struct fact_number)  /* of 32 bits */                                                                 \
    FORM(ID, struct fact_number)      /* wr_id: any 64 bits */                                                         \
    FORM(QPN, struct fact_number)     /* number of a queue pair */                                                     \
    FORM(KEY, struct fact_number)     /* lkey or rkey */                                                               \
    FORM(ADDRESS, struct fact_number) /* of memory */                                                                  \
    FORM(ACCESS, struct fact_number)  /* enum ibv_access_flags */                                                      \
    FORM(BYTES, struct fact_number)                                                                                    \
    FORM(TIME, struct fact_number) /* nanoseconds since 1970 */                                                        \
    FORM(SECONDS, struct fact_number)                                                                                  \
    FORM(PID, struct fact_number)                                                                                      \
    FORM(HEX, struct fact_number) /* a number that is written as a string, 0x1a2b */                                   \
    FORM(FLAG, struct fact_flag)  /* a boolean */                                                                      \
    FORM(WORD, const char *)      /* a text of ours, which is written as it is */                                      \
    FORM(TEXT, const char *)      /* a text of others (diag/clean.h) */                                                \
    FORM(INNER, struct fact_inner)                                                                                     \
    FORM(MEMBERS, struct fact_inner) /* several members with other keys */                                             \
    FORM(COUNT, struct fact_number)  /* of 64 bits */

#define FORM(name, type) typedef type fact_##name;
FACT_FORMS(FORM)
#undef FORM
#define FORM(name, type) FACT_##name,
enum fact_form { FACT_FORMS(FORM) };
#undef FORM

#define fact_LIST(of) fact_INNER
#define fact_MAP(of) fact_INNER
#define fact_ONE(of) fact_INNER
#define FACT_LIST(of) FACT_INNER
#define FACT_MAP(of) FACT_INNER
#define FACT_ONE(of) FACT_INNER

/* Returns true if values of this form concern their own program and user alone: addresses, keys, tags and wr_ids. */
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

/* struct facts_qp and so on. A struct is all zero at first: nothing is known. Its texts are not copied, and must
 * outlive it. */
#define FACT_MEMBER(kind, name, form, source, when, meaning) fact_##form name;
#define FACTS_DECLARE(kind, chapter, of)                                                                               \
    struct facts_##kind {                                                                                              \
        FACTS_##kind(FACT_MEMBER)                                                                                      \
    };                                                                                                                 \
    extern const struct facts_kind facts_of_##kind;
FACTS_KINDS(FACTS_DECLARE)

/* The i-th kind, in the order of the list; NULL: there are no more. */
const struct facts_kind *facts_kind(size_t i);

/* Writes an object of JSON with the facts that are known. `facts` is the struct of the kind. */
void facts_write(FILE *, const struct facts_kind *, const void *facts);
