/* Joins the record of a packet where it was sent with its record where it arrived. */
#pragma once

#include "draw/ladder.h"

/* Fills ladder->list, by time of departure. */
void transits_find(struct ladder *, const struct records *, const struct flows *);
