#include "wire/ether.h"

#include <stddef.h>

#include "wire/bytes.h"
#include "wire/crc/crc32.h"

enum {
    TYPE_SERVICE_TAG = 0x88a8,
    TYPE_OLD_TAG = 0x9100,
    TYPE_MPLS = 0x8847,
    TYPE_MPLS_MULTICAST = 0x8848,
    TYPE_BRIDGED = 0x6558, /* Ethernet in GRE */

    PROTOCOL_HOP_BY_HOP = 0,
    PROTOCOL_IPV4 = 4,
    PROTOCOL_TCP = 6,
    PROTOCOL_UDP = 17,
    PROTOCOL_IPV6 = 41,
    PROTOCOL_ROUTING = 43,
    PROTOCOL_FRAGMENT = 44,
    PROTOCOL_GRE = 47,
    PROTOCOL_ESP = 50,
    PROTOCOL_DESTINATION = 60,

    PORT_VXLAN = 4789,
    PORT_MPLS = 6635,
};

/* The place of the parser in a frame. */
struct cursor {
    struct ether *frame;
    uint32_t at, end;
    bool inner;
    bool tunnel; /* the next header is the first one of a tunnel */
};

static bool has(const struct cursor *cursor, uint32_t bytes)
{
    return cursor->end - cursor->at >= bytes;
}

static const uint8_t *here(const struct cursor *cursor)
{
    return cursor->frame->bytes + cursor->at;
}

/* Enters a layer whose header is `size` bytes, and skips the header. */
static struct ether_layer *ether_enter(struct cursor *cursor, enum ether_kind kind, uint32_t size)
{
    struct ether_layer *layer = &cursor->frame->layers[cursor->frame->count++];
    *layer = (struct ether_layer){
        .kind = (uint8_t)kind, .inner = cursor->inner, .offset = cursor->at, .size = size, .end = cursor->end};
    cursor->at += size;
    return layer;
}

static enum ether_kind kind_of_type(uint16_t type)
{
    switch (type) {
    case ETHER_TYPE_IPV4:
        return ETHER_IPV4;
    case ETHER_TYPE_IPV6:
        return ETHER_IPV6;
    case TYPE_MPLS:
    case TYPE_MPLS_MULTICAST:
        return ETHER_MPLS;
    case TYPE_BRIDGED:
        return ETHER_ETHERNET;
    default:
        return ETHER_END;
    }
}

static bool is_tag(uint16_t type)
{
    return type == ETHER_TYPE_VLAN || type == TYPE_SERVICE_TAG || type == TYPE_OLD_TAG;
}

static enum ether_kind parse_ethernet(struct cursor *cursor)
{
    enum { TYPE_AT = 12 };
    uint32_t size = ETHER_HEADER;
    if (!has(cursor, size))
        return ETHER_END;
    const uint8_t *bytes = here(cursor);
    uint16_t type = bytes_get16(bytes + TYPE_AT), outermost = 0;
    for (; is_tag(type) && has(cursor, size + ETHER_TAG); size += ETHER_TAG) {
        if (size == ETHER_HEADER)
            outermost = bytes_get16(bytes + size);
        type = bytes_get16(bytes + size + 2);
    }
    struct ether_layer *layer = ether_enter(cursor, ETHER_ETHERNET, size);
    layer->type = type;
    layer->tag = outermost;
    layer->tagged = size > ETHER_HEADER;
    return type == TYPE_BRIDGED ? ETHER_END : kind_of_type(type);
}

static enum ether_kind kind_of_protocol(struct cursor *cursor, uint8_t protocol)
{
    switch (protocol) {
    case PROTOCOL_TCP:
        return ETHER_TCP;
    case PROTOCOL_UDP:
        return ETHER_UDP;
    case PROTOCOL_ESP:
        return ETHER_ESP;
    case PROTOCOL_GRE:
        return ETHER_GRE;
    case PROTOCOL_IPV4:
        cursor->inner = true;
        return ETHER_IPV4;
    case PROTOCOL_IPV6:
        cursor->inner = true;
        return ETHER_IPV6;
    default:
        return ETHER_END;
    }
}

/* Sets the packet's end as its header has it, if the frame is that long; a frame may be longer, because of padding. */
static void limit(struct cursor *cursor, uint32_t end)
{
    if (end < cursor->end)
        cursor->end = end;
}

static enum ether_kind parse_ipv4(struct cursor *cursor)
{
    enum { LEAST = 20, FLAGS_AT = 6, PROTOCOL_AT = 9, MORE = 0x2000, OFFSET = 0x1fff };
    if (!has(cursor, LEAST))
        return ETHER_END;
    const uint8_t *bytes = here(cursor);
    uint32_t size = (bytes[0] & 15u) * 4, total = bytes_get16(bytes + 2);
    if (bytes[0] >> 4 != 4 || size < LEAST || total < size || !has(cursor, size))
        return ETHER_END;
    uint16_t flags = bytes_get16(bytes + FLAGS_AT);
    limit(cursor, cursor->at + total);
    ether_enter(cursor, ETHER_IPV4, size)->fragment = flags & (MORE | OFFSET);
    return flags & OFFSET ? ETHER_END : kind_of_protocol(cursor, bytes[PROTOCOL_AT]);
}

static bool is_extension(uint8_t protocol)
{
    return protocol == PROTOCOL_HOP_BY_HOP || protocol == PROTOCOL_ROUTING || protocol == PROTOCOL_DESTINATION ||
           protocol == PROTOCOL_FRAGMENT;
}

static enum ether_kind parse_ipv6(struct cursor *cursor)
{
    enum { LEAST = 40, LENGTH_AT = 4, NEXT_AT = 6, EXTENSION = 8, OFFSET = 0xfff8 };
    if (!has(cursor, LEAST) || here(cursor)[0] >> 4 != 6)
        return ETHER_END;
    const uint8_t *bytes = here(cursor);
    uint8_t next = bytes[NEXT_AT];
    uint32_t size = LEAST;
    bool fragment = false, first = true;
    limit(cursor, cursor->at + LEAST + bytes_get16(bytes + LENGTH_AT));
    while (is_extension(next) && has(cursor, size + EXTENSION)) {
        const uint8_t *extension = bytes + size;
        bool fixed = next == PROTOCOL_FRAGMENT;
        if (fixed)
            fragment = true, first = !(bytes_get16(extension + 2) & OFFSET);
        uint32_t length = fixed ? EXTENSION : EXTENSION + extension[1] * 8u;
        if (!has(cursor, size + length))
            break;
        next = extension[0];
        size += length;
    }
    ether_enter(cursor, ETHER_IPV6, size)->fragment = fragment;
    return first ? kind_of_protocol(cursor, next) : ETHER_END;
}

static enum ether_kind parse_tcp(struct cursor *cursor)
{
    enum { LEAST = 20, SIZE_AT = 12 };
    uint32_t size = has(cursor, LEAST) ? (here(cursor)[SIZE_AT] >> 4) * 4u : 0;
    if (size >= LEAST && has(cursor, size))
        ether_enter(cursor, ETHER_TCP, size);
    return ETHER_END;
}

static enum ether_kind parse_udp(struct cursor *cursor)
{
    enum { SIZE = 8, DESTINATION_AT = 2 };
    if (!has(cursor, SIZE))
        return ETHER_END;
    uint16_t destination = bytes_get16(here(cursor) + DESTINATION_AT);
    ether_enter(cursor, ETHER_UDP, SIZE);
    cursor->tunnel = destination == PORT_MPLS;
    return destination == PORT_VXLAN ? ETHER_VXLAN : destination == PORT_MPLS ? ETHER_MPLS : ETHER_END;
}

static enum ether_kind parse_esp(struct cursor *cursor)
{
    enum { SIZE = 8 };
    if (has(cursor, SIZE))
        ether_enter(cursor, ETHER_ESP, SIZE);
    return ETHER_END;
}

static enum ether_kind parse_vxlan(struct cursor *cursor)
{
    enum { SIZE = 8, HAS_NETWORK = 0x08 };
    if (!has(cursor, SIZE) || !(here(cursor)[0] & HAS_NETWORK))
        return ETHER_END;
    ether_enter(cursor, ETHER_VXLAN, SIZE);
    cursor->inner = true;
    return ETHER_ETHERNET;
}

static enum ether_kind parse_gre(struct cursor *cursor)
{
    enum { LEAST = 4, OPTION = 4, CHECKSUM = 0x80, KEY = 0x20, SEQUENCE = 0x10 };
    if (!has(cursor, LEAST))
        return ETHER_END;
    const uint8_t *bytes = here(cursor);
    uint32_t size = LEAST + OPTION * (!!(bytes[0] & CHECKSUM) + !!(bytes[0] & KEY) + !!(bytes[0] & SEQUENCE));
    if (!has(cursor, size))
        return ETHER_END;
    enum ether_kind next = kind_of_type(bytes_get16(bytes + 2));
    ether_enter(cursor, ETHER_GRE, size);
    if (next == ETHER_MPLS)
        cursor->tunnel = true; /* the labels belong to the tunnel, the headers after them are inside */
    else
        cursor->inner = true;
    return next;
}

static enum ether_kind parse_mpls(struct cursor *cursor)
{
    enum { SIZE = 4, BOTTOM = 0x100 };
    if (!has(cursor, SIZE))
        return ETHER_END;
    uint32_t entry = bytes_get32(here(cursor));
    ether_enter(cursor, ETHER_MPLS, SIZE);
    if (!(entry & BOTTOM))
        return ETHER_MPLS;
    if (cursor->tunnel)
        cursor->inner = true;
    cursor->tunnel = false;
    unsigned version = has(cursor, 1) ? here(cursor)[0] >> 4 : 0;
    return version == 4 ? ETHER_IPV4 : version == 6 ? ETHER_IPV6 : ETHER_END;
}

void ether_parse(struct ether *frame, const uint8_t *bytes, uint32_t length)
{
    static enum ether_kind (*const parsers[])(struct cursor *) = {
        [ETHER_ETHERNET] = parse_ethernet, [ETHER_IPV4] = parse_ipv4, [ETHER_IPV6] = parse_ipv6,
        [ETHER_TCP] = parse_tcp,           [ETHER_UDP] = parse_udp,   [ETHER_ESP] = parse_esp,
        [ETHER_VXLAN] = parse_vxlan,       [ETHER_GRE] = parse_gre,   [ETHER_MPLS] = parse_mpls,
    };
    struct cursor cursor = {.frame = frame, .end = length};
    frame->bytes = bytes;
    frame->length = length;
    frame->count = 0;
    enum ether_kind next = ETHER_ETHERNET;
    while (next != ETHER_END && frame->count < ETHER_LAYERS_MAX)
        next = parsers[next](&cursor);
}

const struct ether_layer *ether_find(const struct ether *frame, enum ether_kind kind, bool inner)
{
    for (unsigned i = 0; i < frame->count; i++)
        if (frame->layers[i].kind == kind && frame->layers[i].inner == inner)
            return &frame->layers[i];
    return NULL;
}

void ether_frame_check(const uint8_t *bytes, uint32_t length, uint8_t *to)
{
    uint32_t crc = crc32_go_on(0, bytes, length);
    bytes_put32(to, __builtin_bswap32(crc));
}
