/* Runs of several nodes over a network with faults, in virtual time, for tests. A run depends on its seed alone, and
 * an oracle checks it: each work and each receive ends once and in order, messages arrive as sent, whole and in
 * turn, atomics happen once, memory is not touched once its work has ended, and nothing is left. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "transport/testing/simulator/world.h"

struct simulator_report {
    uint64_t trace;      /* a hash of everything that happened */
    char complaint[256]; /* the first fault; "" when all was well */
    struct statistics statistics;
};

/* Runs a seed. `log` gets a line for all that happens, unless it is NULL. */
void simulator_run(uint64_t seed, FILE *log, struct simulator_report *);
