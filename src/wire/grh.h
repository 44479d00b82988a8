/* The 40 bytes that a receive of datagrams finds before the payload: a GRH, which is an IPv6 header, or for RoCE v2
 * over IPv4 twenty unused bytes and the IPv4 header (RoCEv2 annex, A17.9.1). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    GRH_LENGTH = 40,
    GRH_IPV4_LENGTH = 20, /* of the IPv4 header, which ends where a GRH would */
};

/* The fields of the header. Addresses are GIDs; the destination decides the version of IP. */
struct grh_route {
    const uint8_t *source, *destination;
    uint8_t traffic_class, hop_limit;
    uint32_t flow_label;               /* IPv6 */
    uint16_t identification, fragment; /* IPv4 */
};

/* Returns true if the GID is an IPv4 address (::ffff:a.b.c.d). */
static inline bool grh_is_ipv4(const uint8_t gid[16])
{
    static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};
    return !memcmp(gid, prefix, sizeof prefix);
}

static inline void grh_gid_of_ipv4(const uint8_t address[4], uint8_t gid[16])
{
    memset(gid, 0, 10);
    gid[10] = gid[11] = 0xff;
    memcpy(gid + 12, address, 4);
}

/* Writes the IP header alone, an IPv4 one with its checksum, and returns its length. `udp_length` bytes follow it,
 * including the UDP header; 0: not known yet, see grh_set_length. */
unsigned grh_write_ip(uint8_t *to, const struct grh_route *, uint32_t udp_length);

/* Writes all 40 bytes. */
void grh_write(uint8_t grh[GRH_LENGTH], const struct grh_route *, uint32_t udp_length);

/* Fills the length into 40 bytes that were written without one, which costs less than writing them anew. */
void grh_set_length(uint8_t grh[GRH_LENGTH], uint32_t udp_length);

/* Reads the sender's GID of 40 bytes that have arrived. */
static inline void grh_read_source(const uint8_t grh[GRH_LENGTH], uint8_t source[16])
{
    enum { IPV6_SOURCE = 8, IPV4_SOURCE = 32 };
    if (grh[0] >> 4 == 6)
        memcpy(source, grh + IPV6_SOURCE, 16);
    else
        grh_gid_of_ipv4(grh + IPV4_SOURCE, source);
}

/* Reads both GIDs. */
void grh_read(const uint8_t grh[GRH_LENGTH], uint8_t source[16], uint8_t destination[16]);
