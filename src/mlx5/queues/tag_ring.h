/* Operations of the list of tags, which come as work requests of a queue pair on the SRQ. The program names the places
 * of the list: an operation that adds a buffer says which place the next one gets, and the first gets 0. */
#pragma once

#include "mlx5/queues/form.h"

struct srq;
struct tag_places;

/* Makes the places of an SRQ with this many tags; NULL: no memory. */
struct tag_places *tag_places_make(uint32_t tags);

/* Executes an operation. False: it is malformed, or the list refuses it. Under qp->lock. */
bool tag_ring_operate(struct srq *, struct tag_places *, const struct form *);
