/* rdma_resolve_route. RoCE has no subnet administrator to ask, so a route is found at once, unless a test wants the
 * search to get no answer. Pure, as manager.h says. */
#pragma once

#include "cm/identifier.h"

/* Queues CM_ROUTE_RESOLVED; or, if the owner loses the search (manager_operations), CM_ROUTE_ERROR with -ETIMEDOUT
 * after `milliseconds`. EINVAL: `milliseconds` is 0, or no address is resolved. */
int route_query_start(struct identifier *, uint32_t milliseconds, nanos now);
