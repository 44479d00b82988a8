#include "wire/datagram.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/testing/group.h"
#include "wire/testing/random.h"

enum { PAYLOAD_ROOM = 4096, ROOM = PAYLOAD_ROOM + WIRE_HEADERS_MAX + DATAGRAM_TRAILER_MAX };

static const struct datagram_route ipv4 = {.source = {[10] = 0xff, 0xff, 192, 0, 2, 1},
                                           .destination = {[10] = 0xff, 0xff, 192, 0, 2, 2},
                                           .source_port = 0xc123,
                                           .destination_port = DATAGRAM_PORT,
                                           .fragment = DATAGRAM_DONT_FRAGMENT,
                                           .identification = 0x1234};
static const struct datagram_route ipv6 = {.source = {0xfe, 0x80, [15] = 1},
                                           .destination = {0xfe, 0x80, [15] = 2},
                                           .source_port = 0xc123,
                                           .destination_port = DATAGRAM_PORT};

static uint8_t content[PAYLOAD_ROOM];

/* A packet with payload that its operation allows, in `piece`. */
static struct packet draw_full_packet(struct iovec *piece)
{
    struct packet packet = draw_packet();
    uint32_t flags = op_find(packet.opcode)->flags;
    size_t length = flags & OP_ATOMIC_WRITE ? 8 : flags & OP_PAYLOAD ? draw() % (draw() & 1 ? 16 : PAYLOAD_ROOM) : 0;
    draw_bytes(content, length < 64 ? length : 64);
    *piece = (struct iovec){content, length};
    if (length)
        packet.payload = (struct payload){.length = (uint32_t)length, .count = 1, .pieces = piece};
    return packet;
}

static void random_packets_survive_as_datagrams(void **state)
{
    static uint8_t bytes[ROOM], again[ROOM];
    for (unsigned i = 0; i < 100000; i++) {
        struct iovec piece, found;
        struct datagram_route route = i & 1 ? ipv4 : ipv6;
        struct packet sent = draw_full_packet(&piece), got;
        size_t length = datagram_encode(&route, &sent, bytes, sizeof(bytes));
        assert_int_equal(length % 4, 0);
        assert_int_equal(datagram_decode(&route, bytes, length, &got, &found), WIRE_FINE);
        assert_true(same_headers(&sent, &got));
        assert_int_equal(got.payload.length, piece.iov_len);
        if (piece.iov_len)
            assert_memory_equal(found.iov_base, piece.iov_base, piece.iov_len);
        assert_int_equal(datagram_encode(&route, &got, again, sizeof(again)), length);
        assert_memory_equal(bytes, again, length);
    }
}

static bool pull_nothing(const struct payload *payload, uint32_t offset, const struct iovec *to, uint32_t count)
{
    return false;
}

static void what_does_not_fit_or_cannot_be_had_is_not_encoded(void **state)
{
    uint8_t bytes[64];
    struct iovec piece = {(void *)"12345", 5};
    struct packet packet = {.opcode = 0x04, .payload = {.length = 5, .count = 1, .pieces = &piece}};
    assert_int_equal(datagram_encode(&ipv4, &packet, bytes, 12 + 8 + 4), 24);
    assert_int_equal(datagram_encode(&ipv4, &packet, bytes, 12 + 8 + 3), 0);
    packet.payload.pull = pull_nothing;
    assert_int_equal(datagram_encode(&ipv4, &packet, bytes, sizeof(bytes)), 0);
}

/* Gives a datagram of any bytes the right ICRC. */
static void seal(const struct datagram_route *route, uint8_t *bytes, size_t length)
{
    struct iovec covered = {bytes, length - DATAGRAM_ICRC};
    uint32_t crc = wire_icrc(route, &covered, 1);
    for (unsigned i = 0; i < 4; i++)
        bytes[covered.iov_len + i] = (uint8_t)(crc >> 8 * i);
}

static enum wire_fault decode_sealed(uint8_t *bytes, size_t length)
{
    struct iovec piece;
    struct datagram_route route = ipv4;
    struct packet packet;
    seal(&ipv4, bytes, length);
    return datagram_decode(&route, bytes, length, &packet, &piece);
}

static void c9_6_1_every_fault_has_its_name(void **state)
{
    uint8_t bytes[64] = {0x04};
    struct datagram_route route = ipv4;
    struct packet packet;
    struct iovec piece;
    assert_int_equal(datagram_decode(&route, bytes, 15, &packet, &piece), WIRE_TRUNCATED);
    assert_int_equal(datagram_decode(&route, bytes, 64, &packet, &piece), WIRE_ICRC);
    assert_int_equal(decode_sealed(bytes, 16), WIRE_FINE);
    assert_int_equal(decode_sealed(bytes, 18), WIRE_PAD); /* not a multiple of four */
    assert_int_equal(decode_sealed((uint8_t[64]){0x04, 0x10}, 16), WIRE_PAD);
    assert_int_equal(decode_sealed((uint8_t[64]){0x04, 0x30}, 20), WIRE_FINE);
    assert_int_equal(decode_sealed((uint8_t[64]){0x04, 0x01}, 20), WIRE_VERSION);
    assert_int_equal(decode_sealed((uint8_t[64]){0x15}, 64), WIRE_OPCODE);
    assert_int_equal(decode_sealed((uint8_t[64]){0x0c}, 28), WIRE_TRUNCATED);
    assert_int_equal(decode_sealed((uint8_t[64]){0x0c}, 32), WIRE_FINE);
    assert_int_equal(decode_sealed((uint8_t[64]){0x0c}, 36), WIRE_UNEXPECTED);
    assert_int_equal(decode_sealed((uint8_t[64]){0x1d}, 40), WIRE_FINE);
    assert_int_equal(decode_sealed((uint8_t[64]){0x1d, 0x10}, 40), WIRE_UNEXPECTED);
}

/* A UDP length has 16 bits; if it is not a multiple of four, that is reported, and not the ICRC. */
static void the_longest_datagram_is_looked_at(void **state)
{
    uint8_t *bytes = calloc(1, UINT16_MAX + 1);
    uint16_t identification = 0;
    bytes[0] = 0x04;
    assert_int_equal(decode_sealed(bytes, UINT16_MAX), WIRE_PAD);
    assert_true(datagram_identify(&ipv4, bytes, UINT16_MAX, &identification));
    assert_int_equal(identification, ipv4.identification);
    assert_int_equal(decode_sealed(bytes, UINT16_MAX + 1), WIRE_ICRC);
    assert_false(datagram_identify(&ipv4, bytes, UINT16_MAX + 1, &identification));
    free(bytes);
}

/* Flips each bit of a datagram and of everything that its ICRC covers below: each must be noticed. */
static void a17_3_3_every_flipped_bit_is_noticed(void **state)
{
    uint8_t bytes[ROOM];
    struct iovec piece = {content, 13}, found;
    struct packet packet = {.opcode = 0x0b, .payload = {.length = 13, .count = 1, .pieces = &piece}}, got;
    for (unsigned version = 0; version < 2; version++) {
        const struct datagram_route *whole = version ? &ipv6 : &ipv4;
        size_t length = datagram_encode(whole, &packet, bytes, sizeof(bytes));
        struct datagram_route route = *whole;
        for (unsigned bit = 0; bit < 8 * length; bit++) {
            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
            bool masked = bit / 8 == 4; /* congestion bits, which routers set */
            assert_int_equal(datagram_decode(&route, bytes, length, &got, &found), masked ? WIRE_FINE : WIRE_ICRC);
            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        uint8_t *ports = (uint8_t *)&route + offsetof(struct datagram_route, source_port);
        ports[0] ^= 1;
        assert_int_equal(datagram_decode(&route, bytes, length, &got, &found), WIRE_ICRC);
        ports[0] ^= 1;
        route.source[15] ^= 0x80;
        assert_int_equal(datagram_decode(&route, bytes, length, &got, &found), WIRE_ICRC);
        route.source[15] ^= 0x80;
        route.destination[15] ^= 1;
        assert_int_equal(datagram_decode(&route, bytes, length, &got, &found), WIRE_ICRC);
    }
}

static void every_identification_is_found(void **state)
{
    uint8_t bytes[ROOM];
    struct iovec piece, found;
    for (unsigned identification = 0; identification <= UINT16_MAX; identification++) {
        struct packet packet = draw_full_packet(&piece), got;
        struct datagram_route sent = ipv4, received = ipv4;
        sent.identification = (uint16_t)identification;
        received.identification_unknown = true;
        size_t length = datagram_encode(&sent, &packet, bytes, sizeof(bytes));
        assert_int_equal(datagram_decode(&received, bytes, length, &got, &found), WIRE_FINE);
        assert_int_equal(received.identification, identification);
    }
}

/* Chance lets one corrupted packet of 65536 pass: with this seed a handful at most. */
static void corruption_is_noticed_without_the_identification(void **state)
{
    uint8_t bytes[ROOM];
    struct iovec piece, found;
    unsigned passed = 0;
    for (unsigned i = 0; i < 100000; i++) {
        struct packet packet = draw_full_packet(&piece), got;
        struct datagram_route route = ipv4;
        route.identification_unknown = true;
        size_t length = datagram_encode(&route, &packet, bytes, sizeof(bytes)), at;
        while ((at = draw() % length) == 4)
            ;
        bytes[at] ^= (uint8_t)(1 << draw() % 8);
        passed += datagram_decode(&route, bytes, length, &got, &found) != WIRE_ICRC;
    }
    assert_true(passed <= 8);
}

static void ipv6_has_no_identification(void **state)
{
    uint8_t bytes[64] = {0x04};
    uint16_t identification;
    assert_false(datagram_identify(&ipv6, bytes, 16, &identification));
    assert_false(datagram_identify(&ipv4, bytes, 15, &identification));
}

/* Decodes the bytes; true: they are fine, the packet is inside of them, and can be sent again unchanged. */
static bool is_fine(struct datagram_route *route, const uint8_t *bytes, size_t length)
{
    uint8_t again[128];
    struct packet packet;
    struct iovec piece = {NULL, 0};
    if (datagram_decode(route, bytes, length, &packet, &piece) != WIRE_FINE)
        return false;
    assert_int_equal(packet.payload.length, packet.payload.count ? piece.iov_len : 0);
    if (packet.payload.length)
        assert_in_range((const uint8_t *)piece.iov_base - bytes, 12, length - DATAGRAM_ICRC - packet.payload.length);
    assert_int_equal(datagram_encode(route, &packet, again, sizeof again), length);
    return true;
}

/* A wrong ICRC of 32 bits is right by chance never; over IPv4, where any of 65536 identifications will do, hardly. */
static void datagrams_of_any_bytes_are_taken_only_whole_and_sealed(void **state)
{
    unsigned fine[2][2] = {{0}}; /* by version, sealed or not */
    for (unsigned i = 0; i < 200000; i++) {
        size_t length = draw() % 80;
        uint8_t *bytes = malloc(length ? length : 1);
        draw_bytes(bytes, length);
        if (length > 1)
            bytes[1] &= 0xf0;
        struct datagram_route route = i & 1 ? ipv4 : ipv6;
        route.identification_unknown = true;
        bool sealed = length >= 16 && i & 2;
        if (sealed)
            seal(&route, bytes, length);
        fine[i & 1][sealed] += is_fine(&route, bytes, length);
        free(bytes);
    }
    assert_int_equal(fine[0][false], 0);
    assert_in_range(fine[1][false], 0, 8);
    assert_in_range(fine[0][true], 100, 40000);
    assert_in_range(fine[1][true], 100, 40000);
}

TESTS(random_packets_survive_as_datagrams,
      what_does_not_fit_or_cannot_be_had_is_not_encoded,
      c9_6_1_every_fault_has_its_name,
      the_longest_datagram_is_looked_at,
      a17_3_3_every_flipped_bit_is_noticed,
      every_identification_is_found,
      corruption_is_noticed_without_the_identification,
      ipv6_has_no_identification,
      datagrams_of_any_bytes_are_taken_only_whole_and_sealed)
