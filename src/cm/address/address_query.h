/* rdma_resolve_addr: finds the route to the destination, and whether the first neighbour on it is there. Pure, as
 * manager.h says. */
#pragma once

#include "cm/identifier.h"

/* Starts the query; `source` of family 0: not given. After success the identifier gets ADDR_RESOLVED or ADDR_ERROR: at
 * once, or, if the neighbour must be asked, within `milliseconds` (from 2^31 on: whenever it answers). */
int address_query_start(struct identifier *, const struct cm_address *source, const struct cm_address *destination,
                        uint32_t milliseconds, nanos now);
