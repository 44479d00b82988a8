/* rdma_resolve_route. RoCE has no subnet administrator to ask, so a route is found at once, unless a test wants it to
 * get no answer. Pure, as identifier.h. */
#pragma once

#include "cm/identifier.h"

/* Queues CM_ROUTE_RESOLVED; or, if the owner loses the route (manager_operations), CM_ROUTE_ERROR with -ETIMEDOUT after
 * `milliseconds`. EINVAL: these are 0, or no address is resolved. */
int route_query_start(struct identifier *, uint32_t milliseconds, nanos now);
