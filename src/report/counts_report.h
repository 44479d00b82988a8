/* The counts, as JSON, with the keys of events/events.def. */
#pragma once

#include <stdio.h>

#include "events/events.h"

/* Writes the fields of an object, without its braces. `by_peers`: the counts that peers make, by BY_PEERS_ of
 * events/events.h; NULL for a device or a queue pair, as peers do not count by these. */
void counts_report(FILE *, const struct counts_total *, const uint64_t *by_peers);

/* Writes the fields with the counts of this process's calls, without braces. */
void counts_report_calls(FILE *);
