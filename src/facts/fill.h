/* Fills a struct of facts from the sources that facts.def names. In a function that has `facts`, the struct to fill,
 * and `from`, the object, with its lock; of a kind with times also `epoch`, the number to add to a time of the process
 * for nanoseconds since 1970:
 *
 *     FACTS_cq(FACT_FILL)
 *
 * Facts that are MADE are left as they are. The words for the numbers of verbs are in verbs/object/words.h. */
#ifndef FACTS_FILL_H
#define FACTS_FILL_H

#include "facts/facts.h"

#define FACT_FILL(kind, name, form, source, when, meaning) FACT_PUT_##form(&facts->name, FACT_FROM_##source);

/* Whether it is known, and the value. */
#define FACT_FROM_AT(member) true, (from->member)
#define FACT_FROM_SOME(member) (from->member), (from->member)
#define FACT_FROM_MADE false, 0
#define FACT_FROM_REASON(member) (from->member), reason_name(from->member)

#define FACT_PUT_NUMBER(...) fact_put(__VA_ARGS__)
#define FACT_PUT_SIGNED(...) fact_put_signed(__VA_ARGS__)
#define FACT_PUT_ID(...) fact_put(__VA_ARGS__)
#define FACT_PUT_QPN(...) fact_put(__VA_ARGS__)
#define FACT_PUT_KEY(...) fact_put(__VA_ARGS__)
#define FACT_PUT_ADDRESS(...) fact_put(__VA_ARGS__)
#define FACT_PUT_ACCESS(...) fact_put(__VA_ARGS__)
#define FACT_PUT_BYTES(...) fact_put(__VA_ARGS__)
#define FACT_PUT_SECONDS(...) fact_put(__VA_ARGS__)
#define FACT_PUT_PID(...) fact_put(__VA_ARGS__)
#define FACT_PUT_HEX(...) fact_put(__VA_ARGS__)
#define FACT_PUT_TIME(...) fact_put_time(epoch, __VA_ARGS__)
#define FACT_PUT_FLAG(...) fact_put_flag(__VA_ARGS__)
#define FACT_PUT_WORD(...) fact_put_text(__VA_ARGS__)
#define FACT_PUT_TEXT(...) fact_put_text(__VA_ARGS__)
#define FACT_PUT_LIST(of) FACT_PUT_NOTHING
#define FACT_PUT_MAP(of) FACT_PUT_NOTHING
#define FACT_PUT_ONE(of) FACT_PUT_NOTHING
#define FACT_PUT_MEMBERS(...) (void)0
#define FACT_PUT_NOTHING(...) (void)0

static inline void fact_put(struct fact_number *fact, bool known, uint64_t value)
{
    if (known)
        *fact = (struct fact_number){value, true};
}

static inline void fact_put_signed(struct fact_number *fact, bool known, int64_t value)
{
    fact_put(fact, known, (uint64_t)value);
}

static inline void fact_put_time(int64_t epoch, struct fact_number *fact, bool known, uint64_t value)
{
    fact_put(fact, known, value + (uint64_t)epoch);
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

static inline void fact_put_inner(struct fact_inner *fact, void (*write)(FILE *, const void *), const void *of)
{
    *fact = (struct fact_inner){write, of};
}

static inline void fact_forget(struct fact_number *fact)
{
    *fact = (struct fact_number){0};
}

#endif
