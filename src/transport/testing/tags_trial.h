/* Dice and comparisons for tests of tag matching against its model. Include cmocka's headers first. */
#pragma once

#include <stdint.h>
#include <stdlib.h>

#include "transport/testing/tags_model.h"

/* Returns the number of an environment variable, such as SOFTVERBS_STEPS. */
static inline unsigned long trial_number(const char *name, unsigned long otherwise)
{
    const char *text = getenv(name);
    return text ? strtoul(text, NULL, 0) : otherwise;
}

/* The dice of a seed. */
static inline uint64_t trial_dice(uint64_t seed)
{
    return seed * 0x9e3779b97f4a7c15u + 1;
}

static inline uint32_t trial_pick(uint64_t *dice, uint32_t below)
{
    *dice ^= *dice << 13;
    *dice ^= *dice >> 7;
    *dice ^= *dice << 17;
    return (uint32_t)((*dice >> 20) % below);
}

/* Compares the completion with the one that the model expects. `event` has the model's fields. */
#define TRIAL_COMPARE(event, expected)                                                                                 \
    do {                                                                                                               \
        assert_int_equal((event)->status, (expected)->status);                                                         \
        assert_int_equal((event)->id, (expected)->id);                                                                 \
        assert_int_equal((event)->opcode, (expected)->opcode);                                                         \
        if ((event)->status)                                                                                           \
            break;                                                                                                     \
        assert_int_equal((event)->flags, (expected)->flags);                                                           \
        assert_int_equal((event)->length, (expected)->length);                                                         \
        assert_int_equal((event)->tag, (expected)->tag);                                                               \
        assert_int_equal((event)->application, (expected)->application);                                               \
    } while (0)
