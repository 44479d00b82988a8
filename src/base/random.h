/* Numbers that others must not guess: the first keys and queue pair numbers. They are random, unless SOFTVERBS_SEED
 * asks for the same ones in every run, so that tests and captures can be compared; devices on a network refuse that
 * (process/port.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/settings.h"

/* FNV-1a. */
static inline uint64_t random_mix(uint64_t hash, const void *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ ((const uint8_t *)bytes)[i]) * 1099511628211ull;
    return hash;
}

static inline bool random_is_fixed(void)
{
    const char *seed = setting_environment(SETTING_SEED);
    return seed && *seed;
}

/* The upper bits of a product depend on all bits below. */
static inline uint32_t random_fold(uint64_t hash)
{
    return (uint32_t)((hash ^ hash >> 32) * 0x9e3779b97f4a7c15ull >> 32);
}

/* Returns 32 random bits; with a seed, a number that follows from the seed, the word and the count. Thread-safe, keeps
 * no state. */
static inline uint32_t random_draw(const char *what, uint32_t count)
{
    uint64_t hash = 14695981039346656037ull;
    uint32_t number;
    if (random_is_fixed()) {
        for (const char *seed = setting_environment(SETTING_SEED); *seed; seed++)
            hash = random_mix(hash, seed, 1);
        for (; *what; what++)
            hash = random_mix(hash, what, 1);
        return random_fold(random_mix(hash, &count, sizeof count));
    }
    if (getrandom(&number, sizeof number, 0) == sizeof number)
        return number;
    struct timespec now; /* the kernel or a filter has no getrandom(2) */
    clock_gettime(CLOCK_MONOTONIC, &now);
    pid_t self = getpid();
    return random_fold(random_mix(random_mix(hash, &now, sizeof now), &self, sizeof self));
}
