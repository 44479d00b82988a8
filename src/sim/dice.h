/* Numbers by chance that follow from a seed: splitmix64. Pure; calls no function. */
#pragma once

#include <stdint.h>

static inline uint64_t sim_draw(uint64_t *dice)
{
    uint64_t mixed = *dice += 0x9e3779b97f4a7c15ull;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9ull;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebull;
    return mixed ^ mixed >> 31;
}

/* A number from `least` to `most`, each power of two between them with the same chance. least > 0. */
static inline uint64_t sim_draw_span(uint64_t *dice, uint64_t least, uint64_t most)
{
    unsigned powers = 0;
    while (powers < 63 && least << powers < most)
        powers++;
    uint64_t from = least << (powers ? sim_draw(dice) % powers : 0);
    uint64_t span = from + sim_draw(dice) % from;
    return span < most ? span : most;
}
