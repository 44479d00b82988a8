/* Questions about GIDs. */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <string.h>

#include "wire/grh.h"

static inline bool gid_is_ipv4(const union ibv_gid *gid)
{
    return grh_is_ipv4(gid->raw);
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
    union ibv_gid gid;
    grh_gid_of_ipv4(address, gid.raw);
    return gid;
}

/* Reads source and destination from the 40 bytes before a datagram. */
static inline void gid_from_grh(const uint8_t grh[GRH_LENGTH], union ibv_gid *source, union ibv_gid *destination)
{
    grh_read(grh, source->raw, destination->raw);
}
