/* The reach of rules of scripts in front of another libibverbs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "script/reach.h"

struct script;

extern const struct script_reach around_reach;

/* Whether a process that runs can get these rules now: some need what was in front from the beginning. False: `why` is
 * a sentence. Thread-safe. */
bool around_may_begin(const struct script *, char *why, size_t size);
