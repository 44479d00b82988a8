/* Reads the facts that processes write (src/facts/facts.h) back into structs. Nothing in it is trusted: it may come
 * from another version, from a file, or from a process that was overwritten. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "facts/facts.h"

enum { FACTS_DEPTH = 16 }; /* of lists and objects in one another */

/* The value of JSON in the text; NULL: the text is no JSON, or is deeper than FACTS_DEPTH. A number from 2^63 on
 * becomes its complement of two, as jansson has signed numbers only. */
json_t *facts_parse(const char *text, size_t size);

/* The value of JSON in all that the descriptor's file has, from its beginning on; NULL as of facts_parse. */
json_t *facts_parse_descriptor(int fd);

/* Fills the struct of the kind. A key that the kind does not have is ignored; the fact of a key that is missing is not
 * known. False: a value has another type, or is a number that its form can't have; then no fact is known. Texts and
 * inner values belong to the object. */
bool facts_read(const struct facts_kind *, const json_t *object, void *facts);

/* Reads the i-th object of a list; false: no such object, or it was refused. */
bool facts_read_at(const struct facts_kind *, const struct fact_inner *list, size_t i, void *facts);

/* The line of facts.def for the member at this offset of the kind's struct. */
const struct fact *facts_at(const struct facts_kind *, size_t at);

/* The member of an object for the fact at this offset, as it is; NULL: no such member. */
const json_t *facts_member(const struct facts_kind *, const json_t *object, size_t at);

/* Returns whether the key belongs to a fact that concerns its program alone: an address, a key, a tag or a wr_id. */
bool facts_is_own(const char *key);

/* A copy of the object with these members only. */
json_t *facts_pick(const struct facts_kind *, const json_t *object, const size_t *at, size_t count);

/* Room for the facts of any kind. */
union facts_any {
    struct facts_process process;
    struct facts_qp qp;
    struct facts_cq cq;
    struct facts_srq srq;
    struct facts_tag tag;
    struct facts_mr mr;
    struct facts_pd pd;
    struct facts_identifier identifier;
    struct facts_story story;
};

/* The number of elements of a list; 0: not known. */
size_t facts_count(const struct fact_inner *list);

/* The value of an inner fact; NULL: not known. */
static inline const json_t *facts_json(const struct fact_inner *inner)
{
    return (const json_t *)inner->of;
}

static inline bool facts_is(const struct fact_flag *flag)
{
    return flag->known && flag->value;
}

/* Whether the number is known to be 0, or above 0. */
static inline bool facts_is_zero(const struct fact_number *number)
{
    return number->known && !number->value;
}

static inline bool facts_is_some(const struct fact_number *number)
{
    return number->known && number->value;
}

/* The text, or "". */
static inline const char *facts_text(const char *text)
{
    return text ? text : "";
}
