/* Receive-side scaling: the hash over fields of a frame. Pure. */
#pragma once

#include <infiniband/verbs.h> /* structures and enums; no function of it is called */
#include <stdint.h>

#include "diag/diag.h"
#include "wire/ether.h"

enum {
    RSS_KEY = 40, /* bytes: 36 of addresses and ports of IPv6, and 32 bits after the last */
    RSS_FIELDS = IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4 | IBV_RX_HASH_SRC_IPV6 | IBV_RX_HASH_DST_IPV6 |
                 IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_TCP | IBV_RX_HASH_SRC_PORT_UDP |
                 IBV_RX_HASH_DST_PORT_UDP | IBV_RX_HASH_IPSEC_SPI,
};

struct rss_hash {
    uint8_t key[RSS_KEY];
    uint64_t fields; /* enum ibv_rx_hash_fields */
};

/* Takes over the configuration: REASON_NONE or REASON_RSS_HASH. */
enum reason rss_configure(struct rss_hash *, const struct ibv_rx_hash_conf *);

/* The Toeplitz hash of the bytes, at most RSS_KEY - 4 of them. */
uint32_t rss_toeplitz(const uint8_t key[RSS_KEY], const uint8_t *bytes, uint32_t length);

/* The hash of those configured fields that the frame has, in the order of source address, destination address,
 * source port, destination port, SPI; 0 for a frame without such a field. */
uint32_t rss_of(const struct rss_hash *, const struct ether *);
