#include "verbs/kinds/ethernet/rss.h"

#include <stdbool.h>
#include <string.h>

#include "wire/bytes.h"

static const uint64_t fields_ipv4 = IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4;
static const uint64_t fields_ipv6 = IBV_RX_HASH_SRC_IPV6 | IBV_RX_HASH_DST_IPV6;
static const uint64_t fields_tcp = IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_TCP;
static const uint64_t fields_udp = IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP;

enum reason rss_configure(struct rss_hash *hash, const struct ibv_rx_hash_conf *configuration)
{
    const uint64_t known = RSS_FIELDS | (uint64_t)IBV_RX_HASH_INNER;
    uint64_t fields = configuration->rx_hash_fields_mask;
    if (configuration->rx_hash_function != IBV_RX_HASH_FUNC_TOEPLITZ || !configuration->rx_hash_key ||
        configuration->rx_hash_key_len != RSS_KEY || fields & ~known)
        return REASON_RSS_HASH;
    if ((fields & fields_ipv4 && fields & fields_ipv6) || (fields & fields_tcp && fields & fields_udp))
        return REASON_RSS_HASH;
    memcpy(hash->key, configuration->rx_hash_key, RSS_KEY);
    hash->fields = fields;
    return REASON_NONE;
}

/* Each bit of the input that is set adds the 32 bits of the key that begin at that bit's number. */
uint32_t rss_toeplitz(const uint8_t key[RSS_KEY], const uint8_t *bytes, uint32_t length)
{
    uint32_t hash = 0, window = bytes_get32(key);
    for (uint32_t i = 0; i < length && i < RSS_KEY - 4; i++)
        for (unsigned bit = 8; bit-- > 0;) {
            hash ^= bytes[i] >> bit & 1 ? window : 0;
            window = window << 1 | (key[i + 4] >> bit & 1);
        }
    return hash;
}

struct input {
    uint8_t bytes[RSS_KEY];
    uint32_t length;
};

static void rss_add(struct input *input, bool wanted, const uint8_t *bytes, uint32_t length)
{
    if (!wanted)
        return;
    memcpy(input->bytes + input->length, bytes, length);
    input->length += length;
}

static void add_layer(struct input *input, uint64_t fields, const uint8_t *header, enum ether_kind kind)
{
    switch (kind) {
    case ETHER_IPV4:
        rss_add(input, fields & IBV_RX_HASH_SRC_IPV4, header + 12, 4);
        return rss_add(input, fields & IBV_RX_HASH_DST_IPV4, header + 16, 4);
    case ETHER_IPV6:
        rss_add(input, fields & IBV_RX_HASH_SRC_IPV6, header + 8, 16);
        return rss_add(input, fields & IBV_RX_HASH_DST_IPV6, header + 24, 16);
    case ETHER_TCP:
        rss_add(input, fields & IBV_RX_HASH_SRC_PORT_TCP, header, 2);
        return rss_add(input, fields & IBV_RX_HASH_DST_PORT_TCP, header + 2, 2);
    case ETHER_UDP:
        rss_add(input, fields & IBV_RX_HASH_SRC_PORT_UDP, header, 2);
        return rss_add(input, fields & IBV_RX_HASH_DST_PORT_UDP, header + 2, 2);
    case ETHER_ESP:
        return rss_add(input, fields & IBV_RX_HASH_IPSEC_SPI, header, 4);
    default:
        return;
    }
}

uint32_t rss_of(const struct rss_hash *hash, const struct ether *frame)
{
    static const enum ether_kind kinds[] = {ETHER_IPV4, ETHER_IPV6, ETHER_TCP, ETHER_UDP, ETHER_ESP};
    bool inner = hash->fields & (uint64_t)IBV_RX_HASH_INNER;
    struct input input = {.length = 0};
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const struct ether_layer *layer = ether_find(frame, kinds[i], inner);
        if (layer)
            add_layer(&input, hash->fields, ether_header(frame, layer), kinds[i]);
    }
    return input.length ? rss_toeplitz(hash->key, input.bytes, input.length) : 0;
}
