/* The parts that the programs of this folder share: a clock, processors and medians. */
#pragma once

#include <sched.h>
#include <stdlib.h>
#include <time.h>

static inline double measure_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Moves the calling thread to the nth of the processors that it may use, from 0, if there are more than n. */
static inline void measure_pin(int nth)
{
    cpu_set_t allowed, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof allowed, &allowed) || CPU_COUNT(&allowed) < 2)
        return;
    for (int processor = 0; processor < CPU_SETSIZE; processor++)
        if (CPU_ISSET(processor, &allowed) && nth-- == 0) {
            CPU_SET(processor, &one);
            sched_setaffinity(0, sizeof one, &one);
        }
}

static inline int measure_compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Sorts the samples. */
static inline double measure_median(double *samples, size_t count)
{
    qsort(samples, count, sizeof *samples, measure_compare);
    return samples[count / 2];
}

/* The share TEST_ROUNDS (tests/clients/clients.py) of `count`, which is 10 at least, so that a test can run a
 * measurement. */
static inline unsigned measure_rounds(unsigned count)
{
    const char *share = getenv("TEST_ROUNDS");
    double rounds = share && *share ? count * atof(share) : count;
    return rounds >= count ? count : rounds < 10 ? 10 : (unsigned)rounds;
}
