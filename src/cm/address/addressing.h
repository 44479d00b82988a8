/* Addresses in requests: the header of IP addressing that goes before the program's private data, and what an
 * identifier is given of it. */
#ifndef CM_ADDRESS_ADDRESSING_H
#define CM_ADDRESS_ADDRESSING_H

#include "cm/identifier.h"
#include "wire/cm_ip.h"

/* The parameters of a request, with the header before their private data unless the identifier's addresses are of
 * AF_IB. */
struct cm_parameters addressing_put(const struct identifier *, const struct cm_parameters *);

/* Gives a passive identifier the addresses and the way of the request that made it; `ip` NULL: without the header. */
void addressing_take(struct identifier *, const struct identifier *listener, const struct cm_ip *ip,
                     const struct cm_route *);

#endif
