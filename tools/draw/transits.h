/* Joins what was captured where a packet was sent with what was captured where it arrived. */
#ifndef TOOLS_TRANSITS_H
#define TOOLS_TRANSITS_H

#include "draw/ladder.h"

/* Fills ladder->list, by time of departure. */
void transits_find(struct ladder *, const struct records *, const struct flows *);

#endif
