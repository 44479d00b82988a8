/* Looks at the processes again and again, in a thread, as a look takes a second if a process is stopped. */
#pragma once

#include "top/rows.h"

enum { COLLECTOR_WHY = 512 };

struct collector;

/* Begins a collector, which ends with the process. NULL: no thread or descriptor is left for it. */
struct collector *collector_begin(const char *directory, double interval);

/* A descriptor that can be read when a look waits to be taken, or a look has failed. */
int collector_descriptor(const struct collector *);

/* Takes the latest look, which the caller ends (top_look_end). False: no look is new; `why`, if not empty, says
 * why a look has failed. */
bool collector_take(struct collector *, struct top_look *, char why[COLLECTOR_WHY]);

/* Sleeps for this number of seconds, whatever signals come; not at all if it is negative. */
void collector_rest(double seconds);

/* Looks once, without a thread. False: the directory can't be read, as the sentence in `why` says. */
bool collector_look(const char *directory, struct top_look *, char why[COLLECTOR_WHY]);
