/* Port numbers of the host: decides which of them an identifier may have, given those that others have. They are apart
 * from those of TCP and UDP. Pure; the owner keeps the list of holders. */
#ifndef CM_PORTS_H
#define CM_PORTS_H

#include "cm/address.h"

struct port_claim {
    uint16_t space; /* CM_SPACE_* */
    uint16_t port;
    bool reuse, only_family;               /* REUSEADDR, AFONLY */
    struct cm_address source, destination; /* their ports are not looked at, but for the destination's */
};

/* Behind which the kernel gives ports by itself: net.ipv4.ip_local_port_range, both included. */
struct ports_range {
    uint16_t low, high;
};

/* Returns whether the port may be had besides the claims of others, all of one space and port. 0: yes; EADDRINUSE: one
 * has that very address; EADDRNOTAVAIL: one of the two is for all addresses. `reuse` false: although both said
 * REUSEADDR. */
int ports_conflict(const struct port_claim *const *others, unsigned count, const struct port_claim *wanted, bool reuse);

/* Returns true if it may be shared, because no peer could mistake one for another. */
bool ports_are_distinct(const struct port_claim *const *others, unsigned count, const struct port_claim *wanted);

/* The port of this attempt, 0 the first: each of the range once in (high - low + 1) attempts. */
static inline uint16_t ports_candidate(const struct ports_range *range, uint64_t random, uint32_t attempt)
{
    uint32_t count = range->high - range->low + 1u;
    return (uint16_t)(range->low + (random % count + attempt) % count);
}

#endif
