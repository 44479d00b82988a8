/* The hash table of the matching list: numbers of entries, found by a hash. It is made for few cache misses, since at
 * 100000 tags a search costs nothing else: a group of fifteen places is one cache line, each place keeps some bits of
 * the hash beside the number, and all of them are compared at once. So a search for an absent number touches one line
 * and no entry, nearly always, and one that succeeds touches one more, the entry's.
 *
 * A number whose group is full is put into the next one with a free place, and is counted in every group that it
 * passed; so a search ends at the first group that no number has passed. Nothing is ever moved, and a removal leaves
 * no trace. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/likely.h"

enum { TAG_GROUP_PLACES = 15 };

struct tag_group {                     /* one cache line */
    uint32_t places[TAG_GROUP_PLACES]; /* number and bits of the hash; 0: free */
    uint32_t passed;                   /* how many entries passed it */
} __attribute__((aligned(64)));

struct tag_table {
    struct tag_group *groups;
    uint32_t group_mask;
    uint32_t number_mask; /* the bits of a place that are the number */
};

/* The size of the memory for `capacity` entries, whose numbers are from 1 to capacity. */
size_t tag_table_size(uint32_t capacity);
/* `memory` is zero and aligned to 64. */
void tag_table_initialize(struct tag_table *, void *memory, uint32_t capacity);

/* Inserts a number and returns its place. */
uint32_t tag_table_insert(struct tag_table *, uint32_t hash, uint32_t number);
/* Removes the number at this place. The hash is the same as for insert. */
void tag_table_remove(struct tag_table *, uint32_t hash, uint32_t place);
/* Replaces the number at this place with another one of the same hash. */
void tag_table_replace(struct tag_table *, uint32_t place, uint32_t by);

/* A walk over all numbers that may have the hash: in some thousandths of cases the hash is another one. */
struct tag_walk {
    const struct tag_table *table;
    uint32_t bits, group, left;
    unsigned candidates; /* in this group, a bit for each place */
};

/* Returns a bit for each place whose number and hash have these bits where `kept` has ones. */
#ifdef __SSE2__
static inline unsigned tag_group_look(const struct tag_group *group, uint32_t bits, uint32_t kept)
{
    const __m128i *lanes = (const __m128i *)group, wanted = _mm_set1_epi32((int)bits), keep = _mm_set1_epi32((int)kept);
    __m128i a = _mm_cmpeq_epi32(_mm_and_si128(lanes[0], keep), wanted);
    __m128i b = _mm_cmpeq_epi32(_mm_and_si128(lanes[1], keep), wanted);
    __m128i c = _mm_cmpeq_epi32(_mm_and_si128(lanes[2], keep), wanted);
    __m128i d = _mm_cmpeq_epi32(_mm_and_si128(lanes[3], keep), wanted);
    __m128i words = _mm_packs_epi16(_mm_packs_epi32(a, b), _mm_packs_epi32(c, d));
    return (unsigned)_mm_movemask_epi8(words) & ((1u << TAG_GROUP_PLACES) - 1);
}
#else
static inline unsigned tag_group_look(const struct tag_group *group, uint32_t bits, uint32_t kept)
{
    unsigned found = 0;
    for (int i = 0; i < TAG_GROUP_PLACES; i++)
        found |= (unsigned)((group->places[i] & kept) == bits) << i;
    return found;
}
#endif

/* The bits of the hash that a place keeps; not all 0, as in a free place. */
static inline uint32_t tag_table_bits(const struct tag_table *table, uint32_t hash)
{
    uint32_t bits = hash & ~table->number_mask;
    return bits ? bits : table->number_mask + 1;
}

static inline struct tag_walk tag_table_walk(const struct tag_table *table, uint32_t hash)
{
    uint32_t bits = tag_table_bits(table, hash), group = hash & table->group_mask;
    return (struct tag_walk){.table = table,
                             .bits = bits,
                             .group = group,
                             .left = table->group_mask,
                             .candidates = tag_group_look(&table->groups[group], bits, ~table->number_mask)};
}

/* Moves to the next group with candidates; no candidates: the walk has ended. By value, to stay in registers. */
struct tag_walk tag_walk_on(struct tag_walk);

/* Returns the next number; 0: the walk has ended. */
static inline uint32_t tag_walk_next(struct tag_walk *walk)
{
    const struct tag_group *group = &walk->table->groups[walk->group];
    if (!walk->candidates) {
        if (likely(!group->passed))
            return 0;
        *walk = tag_walk_on(*walk);
        if (!walk->candidates)
            return 0;
        group = &walk->table->groups[walk->group];
    }
    int place = __builtin_ctz(walk->candidates);
    walk->candidates &= walk->candidates - 1;
    return group->places[place] & walk->table->number_mask;
}
