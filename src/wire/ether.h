/* An Ethernet frame as a list of its layers. Pure. Reads nothing outside the frame, for any bytes in it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
    ETHER_HEADER = 14,
    ETHER_TAG = 4,
    ETHER_FCS = 4,
    ETHER_LAYERS_MAX = 16,
    ETHER_TYPE_IPV4 = 0x0800,
    ETHER_TYPE_IPV6 = 0x86dd,
    ETHER_TYPE_VLAN = 0x8100,
};

enum ether_kind {
    ETHER_END, /* no layer that we know follows */
    ETHER_ETHERNET,
    ETHER_IPV4,
    ETHER_IPV6,
    ETHER_TCP,
    ETHER_UDP,
    ETHER_ESP,
    ETHER_VXLAN,
    ETHER_GRE,
    ETHER_MPLS, /* one entry of a label stack */
};

struct ether_layer {
    uint8_t kind;    /* enum ether_kind */
    bool inner;      /* carried by a tunnel: after VXLAN, GRE, IP in IP, or a label stack over UDP or GRE */
    bool tagged;     /* Ethernet: has a VLAN tag */
    bool fragment;   /* IP: a fragment */
    uint16_t type;   /* Ethernet: the EtherType after the last tag */
    uint16_t tag;    /* Ethernet: the outermost tag's priority, CFI and VLAN id */
    uint32_t offset; /* of the header's first byte in the frame */
    uint32_t size;   /* of the header: with VLAN tags, with IPv4 options, with IPv6 extension headers */
    uint32_t end;    /* where the layer's data ends: an IP packet may be shorter than its frame */
};

struct ether {
    const uint8_t *bytes;
    uint32_t length;
    unsigned count;
    struct ether_layer layers[ETHER_LAYERS_MAX];
};

/* Parses the layers until the first that is cut off, malformed or unknown. `bytes` must outlive *ether. */
void ether_parse(struct ether *, const uint8_t *bytes, uint32_t length);

/* The first layer of the kind, or NULL. */
const struct ether_layer *ether_find(const struct ether *, enum ether_kind, bool inner);

static inline const uint8_t *ether_header(const struct ether *frame, const struct ether_layer *layer)
{
    return frame->bytes + layer->offset;
}

static inline bool ether_is_multicast(const uint8_t *bytes)
{
    return bytes[0] & 1;
}

/* Adds bytes to the sum of an Internet checksum (RFC 1071). Their number is even, except in the last call. */
uint32_t ether_checksum_add(uint32_t sum, const uint8_t *bytes, uint32_t length);

/* Returns true if the frame carries a whole TCP or UDP segment over IPv4, and the checksums of both headers are
 * right. A UDP checksum of 0 counts as right: the sender made no checksum (RFC 768). */
bool ether_checksums_hold(const struct ether *);

/* Writes the checksums of the outermost IP header, if that is IPv4, and of the TCP or UDP header after it, as far as
 * the frame has these. */
void ether_write_checksums(uint8_t *bytes, uint32_t length);

/* The frame check sequence as it is sent, ETHER_FCS bytes (IEEE 802.3, 3.2.9). */
void ether_frame_check(const uint8_t *bytes, uint32_t length, uint8_t *to);
