/* Questions about GIDs, and the GRH that a datagram shows. */
#ifndef VERBS_GID_H
#define VERBS_GID_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <string.h>

static inline bool gid_is_ipv4(const union ibv_gid *gid)
{
    static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};
    return !memcmp(gid->raw, prefix, sizeof prefix);
}

static inline bool gid_is_multicast(const union ibv_gid *gid)
{
    return gid->raw[0] == 0xff || (gid_is_ipv4(gid) && gid->raw[12] >> 4 == 14);
}

static inline bool gid_is_zero(const union ibv_gid *gid)
{
    static const union ibv_gid zero;
    return !memcmp(gid, &zero, sizeof zero);
}

static inline union ibv_gid gid_from_ipv4(const uint8_t address[4])
{
    union ibv_gid gid = {.raw = {[10] = 0xff, [11] = 0xff}};
    memcpy(gid.raw + 12, address, 4);
    return gid;
}

/* Source and destination of the 40 bytes before a datagram: a GRH, or for RoCE v2 over IPv4 twenty unused bytes and the
 * IPv4 header (RoCEv2 annex A17.9.1). */
static inline void gid_from_grh(const uint8_t grh[40], union ibv_gid *source, union ibv_gid *destination)
{
    if (grh[0] >> 4 == 6) {
        memcpy(source, grh + 8, sizeof *source);
        memcpy(destination, grh + 24, sizeof *destination);
    } else {
        *source = gid_from_ipv4(grh + 32);
        *destination = gid_from_ipv4(grh + 36);
    }
}

#endif
