/* Files of turns: the choices of a run that another order than the usual one gave, as text. The first line is
 * "softverbs-sim 1", the second "seed N", and each other one "CHOICE SERIAL". */
#pragma once

#include <stdbool.h>

#include "simulate/choice.h"

struct turns_file {
    uint64_t seed;
    uint32_t count;
    struct sim_turn *turns; /* to be freed */
};

/* False after a sentence; nothing is allocated then. */
bool turns_read(const char *path, struct turns_file *);

/* False after a sentence. */
bool turns_write(const char *path, const struct turns_file *);
