/* Looks at the processes again and again, in a thread, as a process that is stopped keeps the caller waiting for a
 * second.
 */
#ifndef TOOLS_TOP_COLLECTOR_H
#define TOOLS_TOP_COLLECTOR_H

#include "top/rows.h"

enum { COLLECTOR_WHY = 512 };

struct collector;

/* NULL: there is no thread or descriptor for it. It ends with the process. */
struct collector *collector_begin(const char *directory, double interval);

/* Can be read when there is a look that was not taken, or none could be had. */
int collector_descriptor(const struct collector *);

/* The latest look, which is the caller's now. False: there is none that was not taken yet; where *why is not empty, it
 * says why there is none. */
bool collector_take(struct collector *, struct top_look *, char why[COLLECTOR_WHY]);

/* One look, without a thread. */
bool collector_look(const char *directory, struct top_look *, char why[COLLECTOR_WHY]);

#endif
