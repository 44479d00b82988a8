/* How long tests wait for an event that must happen, and how often they try a step that chance may spoil. The variable
 * TEST_PATIENCE multiplies each wait, for sanitizers, emulators and machines that are busy. A wait ends with its event,
 * so a long one costs a good run nothing. tests/clients/patience.py is the same for scripts; the test `patience` (suite
 * house) keeps other such constants out. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    PATIENCE_WITH_ONE = 20000,  /* milliseconds, for a thread or process of this machine */
    PATIENCE_WITH_MANY = 60000, /* for dozens of processes, or a network that loses much */
};

/* The milliseconds times TEST_PATIENCE; at most what poll(2) takes. */
static inline int patience(int milliseconds)
{
    const char *factor = getenv("TEST_PATIENCE");
    double scaled = milliseconds * (factor && atof(factor) > 0 ? atof(factor) : 1);
    return scaled < INT_MAX ? (int)scaled : INT_MAX;
}

#define PATIENCE patience(PATIENCE_WITH_ONE)
#define PATIENCE_SECONDS (patience(PATIENCE_WITH_ONE) / 1e3)
#define PATIENCE_MANY_SECONDS (patience(PATIENCE_WITH_MANY) / 1e3)

static inline double patience_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* True until the end; after it the process ends with status 1 and one line on standard error. */
static inline bool patience_lasts(double end, const char *what, const char *file, int line)
{
    if (patience_now() < end)
        return true;
    fprintf(stderr, "%s:%d: after %.0f s it still holds that %s\n", file, line, PATIENCE_MANY_SECONDS, what);
    _exit(1);
}

/* A `while` for what another thread or process ends, in a test or in a process that it has started: a hang fails. */
#define PATIENTLY_WHILE(condition) \
    for (double patience_end = patience_now() + PATIENCE_MANY_SECONDS; \
         (condition) && patience_lasts(patience_end, #condition, __FILE__, __LINE__);)

/* Calls `once` until it returns true, but not more than `most` times; returns whether it did. `why` says what spoils a
 * try though nothing is wrong. A test that needed several tries prints a line that the end of `make check` shows
 * (tools/build/summary.py). */
static inline bool patience_tries(const char *what, int most, const char *why, bool (*once)(void *), void *context)
{
    for (int i = 1; i <= most; i++)
        if (once(context)) {
            if (i > 1)
                printf("# tries: %d of %d: %s: %s\n", i, most, what, why);
            return true;
        }
    printf("# tries: %d of %d, all in vain: %s: %s\n", most, most, what, why);
    return false;
}
