/* libFuzzer: bytes as the headers of a frame, as a management datagram, and as a datagram whose ICRC is set right
 * (guessing it would take for ever). Whatever decodes must describe, and encode to bytes that decode to the same. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/datagram.h"
#include "wire/mad.h"
#include "wire/random.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void fuzz_headers(const uint8_t *bytes, size_t length)
{
    struct packet packet, again;
    unsigned headers, pad;
    uint8_t encoded[WIRE_HEADERS_MAX];
    char line[64];
    if (wire_decode(bytes, length, &packet, &headers, &pad) != WIRE_FINE)
        return;
    require(headers <= length && pad < 4);
    require(strlen(wire_describe(&packet, line, sizeof(line))) < sizeof(line));
    require(wire_encode(&packet, encoded) == headers);
    require(wire_decode(encoded, headers, &again, &headers, &pad) == WIRE_FINE);
    require(same_headers(&packet, &again));
}

/* As it is, or with the head that it must have, which would take long to guess. Reserved bytes are not kept, so what is
 * encoded is compared with what it gives itself. */
static void fuzz_mad(const uint8_t *bytes, size_t length, bool with_head)
{
    uint8_t copy[MAD_BYTES] = {0}, first[MAD_BYTES], second[MAD_BYTES];
    struct mad mad, again;
    memcpy(copy, bytes, length < MAD_BYTES ? length : MAD_BYTES);
    if (with_head) {
        memcpy(copy, (uint8_t[]){1, 7, 2, 3}, 4);
        memcpy(copy + 16, (uint8_t[]){0, copy[17] & 1 ? MAD_SIDR_REQ : MAD_SIDR_REP}, 2);
    }
    if (mad_decode(copy, with_head ? MAD_BYTES : length < MAD_BYTES ? length : MAD_BYTES, &mad) != MAD_FINE)
        return;
    mad_encode(&mad, first);
    require(mad_decode(first, sizeof first, &again) == MAD_FINE);
    mad_encode(&again, second);
    require(!memcmp(first, second, sizeof first));
    require(mad.transaction == again.transaction && mad.service == again.service && mad.request == again.request);
}

static struct datagram_route make_route(bool ipv4)
{
    struct datagram_route route = {.destination_port = DATAGRAM_PORT, .identification_unknown = true};
    if (ipv4)
        memset(route.destination + 10, 0xff, 2);
    return route;
}

static void seal(const struct datagram_route *route, uint8_t *bytes, size_t length)
{
    struct iovec covered = {bytes, length - DATAGRAM_ICRC};
    uint32_t crc = wire_icrc(route, &covered, 1);
    for (unsigned i = 0; i < DATAGRAM_ICRC; i++)
        bytes[covered.iov_len + i] = (uint8_t)(crc >> 8 * i);
}

static void fuzz_datagram(uint8_t *bytes, size_t length, bool ipv4)
{
    static uint8_t encoded[65536];
    struct datagram_route route = make_route(ipv4);
    struct packet packet;
    struct iovec piece;
    if (length < 16)
        return;
    seal(&route, bytes, length);
    enum wire_fault fault = datagram_decode(&route, bytes, length, &packet, &piece);
    require(fault != WIRE_ICRC);
    if (fault != WIRE_FINE)
        return;
    require(packet.payload.length + DATAGRAM_ICRC < length);
    require(packet.payload.length == 0 ||
            ((uint8_t *)piece.iov_base >= bytes && (uint8_t *)piece.iov_base + piece.iov_len < bytes + length));
    require(datagram_encode(&route, &packet, encoded, sizeof(encoded)) == length);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct datagram_route route = make_route(true);
    struct packet packet;
    struct iovec piece;
    fuzz_headers(bytes, length);
    fuzz_mad(bytes, length, false);
    fuzz_mad(bytes, length, true);
    datagram_decode(&route, bytes, length, &packet, &piece);
    if (length > UINT16_MAX)
        return 0;
    uint8_t *copy = malloc(length + 1);
    if (copy) {
        memcpy(copy, bytes, length);
        fuzz_datagram(copy, length, true);
        fuzz_datagram(copy, length, false);
    }
    free(copy);
    return 0;
}
