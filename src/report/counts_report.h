/* The counts, as JSON, with the keys of events/events.def. */
#pragma once

#include <stdio.h>

#include "events/events.h"

/* Writes the fields of an object, without its braces. `by_peers`: the counts that peers make, by BY_PEERS_ of events/events.h;
 * NULL: it is not known by device or queue pair. */
void counts_report(FILE *, const struct counts_total *, const uint64_t *by_peers);

/* Likewise what is counted of the calls of this process. */
void counts_report_calls(FILE *);
