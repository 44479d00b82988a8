/* The causes why a process waits, from its report and an earlier one (diagnose/diagnose.h). */
#pragma once

#include "facts/seen.h"

#define WAITS_FOR_NOTHING "No wait within softverbs was found: something is under way, or it waits for something else."

/* Returns an array of sentences about a process of `all`, which the caller releases; WAITS_FOR_NOTHING alone if nothing
 * else was found. `before` is the process at an earlier look; NULL: it was not there. */
json_t *waits_of(const struct seen *all, const struct seen_process *, const struct seen_process *before);
