/* Decides which port number of the host an identifier may have beside the claims of others. These numbers are separate
 * from TCP's and UDP's. Pure; the owner keeps the list of claims. */
#pragma once

#include "cm/address.h"

struct port_claim {
    uint16_t space; /* CM_SPACE_* */
    uint16_t port;
    bool reuse, only_family;               /* REUSEADDR, AFONLY */
    struct cm_address source, destination; /* only the destination's port counts */
};

/* The range from which the kernel chooses ports: net.ipv4.ip_local_port_range, both included. */
struct ports_range {
    uint16_t low, high;
};

/* Returns 0 if the claim may be made beside the others, all of one space and port; EADDRINUSE: another claim has the
 * same address; EADDRNOTAVAIL: one of the two is for all addresses. `reuse` false: REUSEADDR of both does not avoid the
 * conflict. */
int ports_conflict(const struct port_claim *const *others, unsigned count, const struct port_claim *wanted, bool reuse);

/* Returns true if the port may be shared, because no peer could mistake one claim for another. */
bool ports_are_distinct(const struct port_claim *const *others, unsigned count, const struct port_claim *wanted);

/* The port of an attempt, counted from 0: (high - low + 1) attempts try each port of the range once. */
static inline uint16_t ports_candidate(const struct ports_range *range, uint64_t random, uint32_t attempt)
{
    uint32_t count = range->high - range->low + 1u;
    return (uint16_t)(range->low + (random % count + attempt) % count);
}
