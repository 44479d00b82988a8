/* Looks at the processes again and again, in a thread, as a process that is stopped keeps the caller waiting for a
 * second.
 */
#pragma once

#include "top/rows.h"

enum { COLLECTOR_WHY = 512 };

struct collector;

/* Begins a collector, which ends with the process. NULL: no thread or descriptor is left for it. */
struct collector *collector_begin(const char *directory, double interval);

/* The descriptor, readable when a look waits to be taken, or a look has failed. */
int collector_descriptor(const struct collector *);

/* Takes the latest look, which becomes the caller's. False: no new look; *why, if not empty, says why a look has
 * failed. */
bool collector_take(struct collector *, struct top_look *, char why[COLLECTOR_WHY]);

/* Looks once, without a thread. False: `why` is a sentence. */
bool collector_look(const char *directory, struct top_look *, char why[COLLECTOR_WHY]);
