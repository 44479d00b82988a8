#include "transport/unreliable/raw_segment.h"

#include "wire/bytes.h"
#include "wire/ether.h"

enum { TCP_SEQUENCE_AT = 4, TCP_FLAGS_AT = 13, TCP_FIN = 0x01, TCP_PUSH = 0x08, TCP_CONGESTION_REDUCED = 0x80 };

/* FIN and PSH belong to the end of the data, CWR to its beginning. */
static void write_tcp(uint8_t *header, uint32_t offset, bool first, bool last)
{
    bytes_put32(header + TCP_SEQUENCE_AT, bytes_get32(header + TCP_SEQUENCE_AT) + offset);
    if (!last)
        header[TCP_FLAGS_AT] &= (uint8_t) ~(TCP_FIN | TCP_PUSH);
    if (!first)
        header[TCP_FLAGS_AT] &= (uint8_t)~TCP_CONGESTION_REDUCED;
}

static void write_ip(uint8_t *frame, const struct ether_layer *ip, uint32_t end, uint32_t index)
{
    enum { IPV4_LENGTH_AT = 2, IPV4_IDENTIFICATION_AT = 4, IPV6_LENGTH_AT = 4, IPV6_HEADER = 40 };
    uint8_t *header = frame + ip->offset;
    if (ip->kind == ETHER_IPV4) {
        uint8_t *identification = header + IPV4_IDENTIFICATION_AT;
        bytes_put16(header + IPV4_LENGTH_AT, (uint16_t)(end - ip->offset));
        bytes_put16(identification, (uint16_t)(bytes_get16(identification) + index));
    } else {
        bytes_put16(header + IPV6_LENGTH_AT, (uint16_t)(end - ip->offset - IPV6_HEADER));
    }
}

/* Sets the lengths first: the program's may be anything, and the parser trusts them. A fragment can't be segmented: its
 * checksum would be the checksum of all fragments. */
static bool find_headers(uint8_t *frame, uint32_t header, uint32_t end, struct ether *ether)
{
    enum { VERSION_4 = 4, VERSION_6 = 6 };
    ether_parse(ether, frame, ETHER_HEADER + 2 * ETHER_TAG < header ? ETHER_HEADER + 2 * ETHER_TAG : header);
    if (!ether->count || ether->layers[0].offset + ether->layers[0].size >= header)
        return false;
    struct ether_layer ip = {.offset = ether->layers[0].size};
    ip.kind = frame[ip.offset] >> 4 == VERSION_4 ? ETHER_IPV4 : ETHER_IPV6;
    if (ip.offset + (ip.kind == ETHER_IPV4 ? 20 : 40) > header)
        return false;
    write_ip(frame, &ip, end, 0);
    ether_parse(ether, frame, end);
    if (ether->count != 3 || ether->layers[1].fragment)
        return false;
    const struct ether_layer *segment = &ether->layers[2];
    bool known = segment->kind == ETHER_TCP || segment->kind == ETHER_UDP;
    return known && segment->offset + segment->size == header;
}

bool raw_segment_head(uint8_t *frame, uint32_t header, uint32_t length, uint32_t offset, uint32_t index, bool last)
{
    enum { UDP_LENGTH_AT = 4 };
    struct ether ether;
    uint32_t end = header + length;
    if (!find_headers(frame, header, end, &ether))
        return false;
    uint8_t *segment = frame + ether.layers[2].offset;
    write_ip(frame, &ether.layers[1], end, index);
    if (ether.layers[2].kind == ETHER_TCP)
        write_tcp(segment, offset, !index, last);
    else
        bytes_put16(segment + UDP_LENGTH_AT, (uint16_t)(end - ether.layers[2].offset));
    ether_write_checksums(frame, end);
    return true;
}
