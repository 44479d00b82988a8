/* Fills a struct of facts from the sources that facts.def names:
 *
 *     FACTS_cq(FACT_FILL)
 *
 * The function around this holds the object's lock and has `facts`, the struct to fill, and `from`, the object; for a
 * kind with times also `epoch`: a time of the process plus this number is nanoseconds since 1970.
 *
 * Facts that are MADE are left as they are. The words for the numbers of verbs are in events/words.h. */
#pragma once

#include "facts/facts.h"

#define FACT_FILL(kind, name, form, source, when, meaning) FACT_PUT(&facts->name, FACT_FROM_##source);

/* Each source becomes two arguments: whether the fact is known, and its value. */
#define FACT_FROM_AT(member) true, (from->member)
#define FACT_FROM_WHEN(member) true, (from->member) + (uint64_t)epoch
#define FACT_FROM_SOME(member) (from->member), (from->member)
#define FACT_FROM_MADE false, 0
#define FACT_FROM_REASON(member) (from->member), reason_name(from->member)

/* A number below 0 becomes its complement of two. */
#define FACT_PUT(fact, ...)                                                                                            \
    _Generic((fact),                                                                                                   \
        struct fact_number *: fact_put,                                                                                \
        struct fact_flag *: fact_put_flag,                                                                             \
        const char **: fact_put_text,                                                                                  \
        struct fact_inner *: fact_leave)(fact, __VA_ARGS__)

static inline void fact_put(struct fact_number *fact, bool known, uint64_t value)
{
    if (known)
        *fact = (struct fact_number){value, true};
}

static inline void fact_put_flag(struct fact_flag *fact, bool known, bool value)
{
    if (known)
        *fact = (struct fact_flag){value, true};
}

static inline void fact_put_text(const char **fact, bool known, const char *text)
{
    if (known)
        *fact = text;
}

static inline void fact_leave(struct fact_inner *fact, bool known, int nothing)
{
}

static inline void fact_put_inner(struct fact_inner *fact, void (*write)(FILE *, const void *), const void *of)
{
    *fact = (struct fact_inner){write, of};
}

static inline void fact_forget(struct fact_number *fact)
{
    *fact = (struct fact_number){0};
}
