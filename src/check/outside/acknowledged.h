/* The events of librdmacm that were acknowledged, and whose memory is therefore free. Under the shadow's lock. */
#pragma once

#include "check/findings/place.h"

/* Remembers that the event of this address was acknowledged at this place. Of events whose addresses collide the newest
 * one is remembered. */
void acknowledged_add(const void *event, const struct place *);

/* Forgets an event that had this address: a new one has it now. */
void acknowledged_remove(const void *event);

/* The place where the event of this address was acknowledged; NULL: it was not, or that is not remembered. Valid until
 * the next acknowledged_add. */
const struct place *acknowledged_find(const void *event);
