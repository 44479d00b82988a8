/* Internet checksums (RFC 1071) of a frame's headers. */
#include <stddef.h>

#include "wire/bytes.h"
#include "wire/ether.h"

enum { CHECKSUM_RIGHT = 0xffff, PORTS_TCP = 6, PORTS_UDP = 17 };

static uint32_t fold(uint32_t sum)
{
    sum = (sum & 0xffff) + (sum >> 16);
    return (sum & 0xffff) + (sum >> 16);
}

uint32_t ether_checksum_add(uint32_t sum, const uint8_t *bytes, uint32_t length)
{
    uint64_t wide = sum;
    for (; length >= 4; bytes += 4, length -= 4)
        wide += bytes_get32(bytes);
    if (length >= 2)
        wide += bytes_get16(bytes), bytes += 2, length -= 2;
    if (length)
        wide += (uint32_t)*bytes << 8;
    wide = (wide & 0xffffffff) + (wide >> 32);
    wide = (wide & 0xffffffff) + (wide >> 32);
    return fold((uint32_t)wide);
}

/* The sum over pseudo header, header and data of a layer, which follows this IP layer. */
static uint32_t sum_of_segment(const struct ether *frame, const struct ether_layer *ip, const struct ether_layer *layer)
{
    enum { IPV4_ADDRESSES = 12, IPV6_ADDRESSES = 8 };
    const uint8_t *header = ether_header(frame, ip);
    uint32_t length = layer->end - layer->offset, sum = length >> 16;
    sum = fold(sum + (length & 0xffff) + (layer->kind == ETHER_TCP ? PORTS_TCP : PORTS_UDP));
    sum = ip->kind == ETHER_IPV4 ? ether_checksum_add(sum, header + IPV4_ADDRESSES, 8)
                                 : ether_checksum_add(sum, header + IPV6_ADDRESSES, 32);
    return ether_checksum_add(sum, ether_header(frame, layer), length);
}

/* The outermost IP layer and the TCP or UDP layer on it; NULL for an absent one. */
static void ether_checksum_find(const struct ether *frame, const struct ether_layer **ip,
                                const struct ether_layer **segment)
{
    *ip = *segment = NULL;
    for (unsigned i = 0; i < frame->count && !*ip; i++) {
        const struct ether_layer *layer = &frame->layers[i];
        if (layer->kind != ETHER_IPV4 && layer->kind != ETHER_IPV6)
            continue;
        *ip = layer;
        if (i + 1 < frame->count && (layer[1].kind == ETHER_TCP || layer[1].kind == ETHER_UDP))
            *segment = layer + 1;
    }
}

static uint32_t place(const struct ether_layer *segment)
{
    return segment->offset + (segment->kind == ETHER_TCP ? 16 : 6);
}

/* Returns true if all of the IP packet is in the frame. */
static bool is_whole(const struct ether *frame, const struct ether_layer *ip)
{
    return !ip->fragment && bytes_get16(ether_header(frame, ip) + 2) == ip->end - ip->offset;
}

bool ether_checksums_hold(const struct ether *frame)
{
    const struct ether_layer *ip, *segment;
    ether_checksum_find(frame, &ip, &segment);
    if (!ip || ip->kind != ETHER_IPV4 || !segment || !is_whole(frame, ip))
        return false;
    if (ether_checksum_add(0, ether_header(frame, ip), ip->size) != CHECKSUM_RIGHT)
        return false;
    if (segment->kind == ETHER_UDP && !bytes_get16(frame->bytes + place(segment)))
        return true;
    return sum_of_segment(frame, ip, segment) == CHECKSUM_RIGHT;
}

void ether_write_checksums(uint8_t *bytes, uint32_t length)
{
    enum { IPV4_CHECKSUM = 10 };
    struct ether frame;
    const struct ether_layer *ip, *segment;
    ether_parse(&frame, bytes, length);
    ether_checksum_find(&frame, &ip, &segment);
    if (ip && ip->kind == ETHER_IPV4) {
        uint8_t *at = bytes + ip->offset + IPV4_CHECKSUM;
        bytes_put16(at, 0);
        bytes_put16(at, (uint16_t)~ether_checksum_add(0, bytes + ip->offset, ip->size));
    }
    if (!segment || ip->fragment)
        return;
    bytes_put16(bytes + place(segment), 0);
    uint16_t checksum = (uint16_t)~sum_of_segment(&frame, ip, segment);
    if (!checksum && segment->kind == ETHER_UDP)
        checksum = 0xffff; /* 0 would mean that the sender made no checksum (RFC 768) */
    bytes_put16(bytes + place(segment), checksum);
}
