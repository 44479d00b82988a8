/* Which losses of datagrams were reported: a program may lose any number of them for one reason. Thread-safe. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "diag/diag.h"

enum { LOST_PAIRS = 32 }; /* the last losses that are remembered */

/* Returns true if no loss for this reason, from one number to another, is remembered, and remembers it. */
bool lost_pairs_is_first(enum reason, uint32_t from, uint32_t to);
