/* Chance that a seed decides: the same seed, the same run. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct chance {
    uint64_t state;
};

/* A Weyl sequence whose values are mixed: consecutive seeds give unrelated streams. */
static inline uint64_t chance_next(struct chance *chance)
{
    uint64_t x = chance->state += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

/* A number from 0 to limit - 1; 0 when the limit is 0. */
static inline uint64_t chance_below(struct chance *chance, uint64_t limit)
{
    return limit ? chance_next(chance) % limit : 0;
}

/* A number from low to high, both included. */
static inline uint64_t chance_between(struct chance *chance, uint64_t low, uint64_t high)
{
    return low + chance_below(chance, high - low + 1);
}

static inline bool chance_hits(struct chance *chance, unsigned per_mille)
{
    return chance_below(chance, 1000) < per_mille;
}
