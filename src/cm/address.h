/* Addresses that programs bind identifiers to, resolve and ask for, and routes of packets. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "wire/grh.h"
#include <sys/socket.h>

#ifndef AF_IB
#define AF_IB 27
#endif

/* A socket address. IPv4 addresses are mapped (::ffff:a.b.c.d), so that the address is the GID in every family. */
struct cm_address {
    uint16_t family;                /* AF_INET, AF_INET6, AF_IB; 0: no address */
    uint16_t port;                  /* host order; AF_IB: the low 16 bits of `service` that the mask covers */
    uint16_t pkey;                  /* AF_IB */
    uint32_t flow;                  /* AF_INET6 and AF_IB: flow information, host order */
    uint32_t scope;                 /* AF_INET6: index of the interface; AF_IB: scope_id's low 32 bits */
    uint64_t service, service_mask; /* AF_IB, host order */
    uint8_t gid[16];
};

/* The port of a device that an identifier is bound to. */
struct cm_port {
    uint32_t device;   /* the owner's number of the device */
    uint64_t guid;     /* the node's, host order */
    uint8_t number;    /* the port's, from 1 */
    uint8_t gid_index; /* the index of `gid` */
    uint8_t mtu;       /* enum ibv_mtu, active */
    uint8_t ack_delay; /* local_ca_ack_delay */
    uint8_t gid[16];
};

enum { CM_NOWHERE = UINT32_MAX };

/* The route to a peer. */
struct cm_route {
    struct cm_port from;
    uint8_t gid[16];   /* the peer's */
    uint32_t neighbor; /* the owner's number of a process of this host; CM_NOWHERE: on another host, or not known yet */
    uint32_t flow_label;
    uint8_t hop_limit, traffic_class;
    uint8_t lifetime; /* packets live 4.096 us * 2^n */
};

static inline bool cm_is_known_family(uint16_t family)
{
    return family == AF_INET || family == AF_INET6 || family == AF_IB;
}

static inline bool cm_is_mapped(const uint8_t gid[16])
{
    return grh_is_ipv4(gid);
}

/* Returns true if the address is the wildcard of its family, or no address at all. */
static inline bool cm_is_any(const struct cm_address *address)
{
    static const uint8_t any[16];
    unsigned from = address->family == AF_INET ? 12 : 0;
    return !memcmp(address->gid + from, any, 16 - from);
}

static inline bool cm_is_loopback(const struct cm_address *address)
{
    static const uint8_t loopback[16] = {[15] = 1};
    return address->family == AF_INET ? address->gid[12] == 127 : !memcmp(address->gid, loopback, 16);
}

static inline bool cm_is_link_local(const struct cm_address *address)
{
    return address->family != AF_INET && address->gid[0] == 0xfe && (address->gid[1] & 0xc0) == 0x80;
}

static inline bool cm_is_multicast(const struct cm_address *address)
{
    return address->family == AF_INET ? address->gid[12] >> 4 == 0xe : address->gid[0] == 0xff;
}

/* The wildcard of a family. */
static inline struct cm_address cm_any(uint16_t family)
{
    struct cm_address address = {.family = family};
    if (family == AF_INET)
        address.gid[10] = address.gid[11] = 0xff;
    return address;
}
