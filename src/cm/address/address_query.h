/* rdma_resolve_addr: finds the way that leads to the destination, and whether the neighbour that packets go to first is
 * there. Pure, as identifier.h. */
#ifndef CM_ADDRESS_ADDRESS_QUERY_H
#define CM_ADDRESS_ADDRESS_QUERY_H

#include "cm/identifier.h"

/* `source` of family 0: none was given. Success is followed by ADDR_RESOLVED or ADDR_ERROR: at once, or, where the
 * neighbour must be asked for, within so many milliseconds (from 2^31 on: whenever it answers). */
int address_query_start(struct identifier *, const struct cm_address *source, const struct cm_address *destination,
                        uint32_t milliseconds, nanos now);

#endif
