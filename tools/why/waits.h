/* The causes why a process waits, by its report and an earlier one (diagnose/diagnose.h). */
#pragma once

#include "facts/seen.h"

#define WAITS_FOR_NOTHING "No wait within softverbs was found: something is under way, or it waits for something else."

/* An array of sentences, WAITS_FOR_NOTHING where there is nothing else: the caller's. The processes are all of the
 * directory now, one of them, and the same one earlier, or NULL. */
json_t *waits_of(const struct seen *, const struct seen_process *, const struct seen_process *before);
