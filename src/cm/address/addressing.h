/* Addresses in requests: the header of IP addressing before the program's private data, and the values that an
 * identifier gets from this header. */
#pragma once

#include "cm/identifier.h"
#include "wire/cm/cm_ip.h"

/* Returns the parameters with the header before their private data, unless the identifier's addresses are of AF_IB. */
struct cm_parameters addressing_put(const struct identifier *, const struct cm_parameters *);

/* Gives a passive identifier the addresses and the route of the request that made it; `ip` NULL: the request has no
 * header. */
void addressing_take(struct identifier *, const struct identifier *listener, const struct cm_ip *ip,
                     const struct cm_route *);
