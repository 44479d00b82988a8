/* libFuzzer: bytes as the headers of a frame inside the host, as a datagram of other hosts, and as an Ethernet frame.
 * Datagrams are taken unchanged, and with an ICRC that is set right for some identification (guessing it would take for
 * ever). Bytes that decode must describe themselves, and encode to bytes that decode to the same packet. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/bytes.h"
#include "wire/datagram.h"
#include "wire/ether.h"
#include "wire/testing/random.h"

enum { RESERVED_AT = 4 }; /* of a BTH: congestion bits, which the ICRC does not cover */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void require(bool holds)
{
    if (!holds)
        abort();
}

/* ---- frames ---- */

static void fuzz_headers(const uint8_t *bytes, size_t length)
{
    struct packet packet, again;
    unsigned headers, pad;
    uint8_t encoded[WIRE_HEADERS_MAX];
    char line[64];
    enum wire_fault fault = wire_decode(bytes, length, &packet, &headers, &pad);
    require(*wire_fault_text(fault));
    if (fault != WIRE_FINE)
        return;
    require(headers <= length && pad < 4);
    require(strlen(wire_describe(&packet, line, sizeof(line))) < sizeof(line));
    require(wire_encode(&packet, encoded) == headers);
    require(wire_decode(encoded, headers, &again, &headers, &pad) == WIRE_FINE);
    require(same_headers(&packet, &again));
}

/* ---- datagrams ---- */

static struct datagram_route make_route(bool ipv4, uint16_t identification)
{
    struct datagram_route route = {.source_port = 0xc123, .destination_port = DATAGRAM_PORT};
    memset(route.source, 0x11, 16);
    memset(route.destination, 0x22, 16);
    if (!ipv4)
        return route;
    memcpy(route.source, (uint8_t[12]){[10] = 0xff, [11] = 0xff}, 12);
    memcpy(route.destination, route.source, 12);
    route.fragment = DATAGRAM_DONT_FRAGMENT;
    route.identification = identification;
    return route;
}

static void seal(const struct datagram_route *route, uint8_t *bytes, size_t length)
{
    struct iovec covered = {bytes, length - DATAGRAM_ICRC};
    uint32_t crc = wire_icrc(route, &covered, 1);
    for (unsigned i = 0; i < DATAGRAM_ICRC; i++)
        bytes[covered.iov_len + i] = (uint8_t)(crc >> 8 * i);
}

/* A datagram that passes has the ICRC that the route, with the identification that was found, gives. */
static void fuzz_as_it_is(const uint8_t *bytes, size_t length, struct datagram_route route)
{
    struct packet packet;
    struct iovec piece;
    enum wire_fault fault = datagram_decode(&route, bytes, length, &packet, &piece);
    require(length >= 16 || fault == WIRE_TRUNCATED);
    require(length <= UINT16_MAX || fault != WIRE_FINE);
    if (fault != WIRE_FINE)
        return;
    struct iovec covered = {(void *)bytes, length - DATAGRAM_ICRC};
    uint32_t crc = wire_icrc(&route, &covered, 1);
    require(!memcmp(bytes + covered.iov_len, (uint8_t[4]){crc, crc >> 8, crc >> 16, crc >> 24}, 4));
}

/* Flips one bit under the ICRC, which is noticed before anything else. */
static void flip(const struct datagram_route *route, uint8_t *bytes, size_t length, uint32_t bit)
{
    struct datagram_route known = *route;
    struct packet packet;
    struct iovec piece;
    size_t at = bit / 8 % length;
    if (at == RESERVED_AT)
        return;
    bytes[at] ^= (uint8_t)(1 << bit % 8);
    require(datagram_decode(&known, bytes, length, &packet, &piece) == WIRE_ICRC);
    bytes[at] ^= (uint8_t)(1 << bit % 8);
}

static void check_packet(const struct datagram_route *route, const uint8_t *bytes, size_t length,
                         const struct packet *packet)
{
    static uint8_t encoded[65536];
    char line[128];
    const uint8_t *payload = packet->payload.length ? packet->payload.pieces->iov_base : bytes;
    require(packet->payload.length + DATAGRAM_ICRC < length);
    require(payload >= bytes && payload + packet->payload.length <= bytes + length - DATAGRAM_ICRC);
    require(datagram_encode(route, packet, encoded, sizeof(encoded)) == length);
    require(strlen(wire_describe(packet, line, sizeof(line))) < sizeof(line));
}

/* Decodes bytes with the right ICRC; over IPv4 the receiver has to find the identification. */
static void fuzz_sealed(uint8_t *bytes, size_t length, bool ipv4, uint16_t identification)
{
    struct datagram_route route = make_route(ipv4, identification), seen = route;
    struct packet packet;
    struct iovec piece;
    seal(&route, bytes, length);
    seen.identification = identification & 1 ? identification - 1 : 0;
    seen.identification_unknown = true;
    enum wire_fault fault = datagram_decode(&seen, bytes, length, &packet, &piece);
    require(fault != WIRE_ICRC);
    require(!ipv4 || seen.identification == identification);
    if (fault == WIRE_FINE)
        check_packet(&route, bytes, length, &packet);
    flip(&route, bytes, length, identification * 2654435761u >> 8);
}

static void fuzz_datagrams(uint8_t *bytes, size_t length)
{
    uint16_t identification = length >= 2 ? (uint16_t)(bytes[length - 1] << 8 | bytes[length - 2]) : 0;
    struct datagram_route unknown = make_route(true, 0);
    unknown.identification_unknown = true;
    fuzz_as_it_is(bytes, length, unknown);
    fuzz_as_it_is(bytes, length, make_route(true, identification));
    fuzz_as_it_is(bytes, length, make_route(false, 0));
    if (length < 16 || length > UINT16_MAX)
        return;
    fuzz_sealed(bytes, length, true, identification);
    fuzz_sealed(bytes, length, false, 0);
}

/* ---- Ethernet ---- */

static void check_layers(const struct ether *frame)
{
    uint32_t at = 0;
    require(frame->count <= ETHER_LAYERS_MAX);
    for (unsigned i = 0; i < frame->count; i++) {
        const struct ether_layer *layer = &frame->layers[i];
        require(layer->kind != ETHER_END && layer->offset == at && layer->size <= layer->end - layer->offset);
        require(layer->end <= frame->length && (!i || layer->end <= layer[-1].end));
        require(ether_find(frame, layer->kind, layer->inner)->offset <= layer->offset);
        at = layer->offset + layer->size;
    }
}

/* Checksums that we write hold, and change only themselves. */
static void fuzz_ethernet(uint8_t *bytes, size_t length)
{
    struct ether frame, again;
    uint8_t frame_check[ETHER_FCS];
    ether_parse(&frame, bytes, (uint32_t)length);
    check_layers(&frame);
    ether_checksums_hold(&frame);
    ether_frame_check(bytes, (uint32_t)length, frame_check);
    ether_write_checksums(bytes, (uint32_t)length);
    ether_parse(&again, bytes, (uint32_t)length);
    const struct ether_layer *ip = ether_find(&frame, ETHER_IPV4, false), *inner = ether_find(&frame, ETHER_UDP, false);
    if (!ip || !inner || inner != ip + 1 || ip->fragment || ether_find(&frame, ETHER_IPV6, false))
        return;
    bool whole = bytes_get16(ether_header(&frame, ip) + 2) == ip->end - ip->offset;
    require(ether_checksums_hold(&again) == whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    uint8_t *copy = malloc(length ? length : 1);
    if (!copy)
        return 0;
    fuzz_headers(bytes, length);
    memcpy(copy, bytes, length);
    fuzz_datagrams(copy, length);
    memcpy(copy, bytes, length);
    fuzz_ethernet(copy, length);
    free(copy);
    return 0;
}
