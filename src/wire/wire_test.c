#include "wire/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/testing/group.h"
#include "wire/op.h"
#include "wire/psn.h"
#include "wire/srd.h"
#include "wire/testing/random.h"

/* The operations of each service as the specification lists them (IBA table 38), with the bytes of their headers; those
 * of SRD are softverbs' own (docs/reference/srd.md). */
static const struct {
    const char *name;
    uint8_t opcode, headers;
} specified[] = {
    {"RC SEND_FIRST", 0x00, 12},
    {"RC SEND_MIDDLE", 0x01, 12},
    {"RC SEND_LAST", 0x02, 12},
    {"RC SEND_LAST_IMMEDIATE", 0x03, 16},
    {"RC SEND_ONLY", 0x04, 12},
    {"RC SEND_ONLY_IMMEDIATE", 0x05, 16},
    {"RC WRITE_FIRST", 0x06, 28},
    {"RC WRITE_MIDDLE", 0x07, 12},
    {"RC WRITE_LAST", 0x08, 12},
    {"RC WRITE_LAST_IMMEDIATE", 0x09, 16},
    {"RC WRITE_ONLY", 0x0a, 28},
    {"RC WRITE_ONLY_IMMEDIATE", 0x0b, 32},
    {"RC READ_REQUEST", 0x0c, 28},
    {"RC READ_RESPONSE_FIRST", 0x0d, 16},
    {"RC READ_RESPONSE_MIDDLE", 0x0e, 12},
    {"RC READ_RESPONSE_LAST", 0x0f, 16},
    {"RC READ_RESPONSE_ONLY", 0x10, 16},
    {"RC ACKNOWLEDGE", 0x11, 16},
    {"RC ATOMIC_ACKNOWLEDGE", 0x12, 24},
    {"RC COMPARE_SWAP", 0x13, 40},
    {"RC FETCH_ADD", 0x14, 40},
    {"RC SEND_LAST_INVALIDATE", 0x16, 16},
    {"RC SEND_ONLY_INVALIDATE", 0x17, 16},
    {"RC FLUSH", 0x1c, 32},
    {"RC ATOMIC_WRITE", 0x1d, 28},
    {"UC SEND_FIRST", 0x20, 12},
    {"UC SEND_MIDDLE", 0x21, 12},
    {"UC SEND_LAST", 0x22, 12},
    {"UC SEND_LAST_IMMEDIATE", 0x23, 16},
    {"UC SEND_ONLY", 0x24, 12},
    {"UC SEND_ONLY_IMMEDIATE", 0x25, 16},
    {"UC WRITE_FIRST", 0x26, 28},
    {"UC WRITE_MIDDLE", 0x27, 12},
    {"UC WRITE_LAST", 0x28, 12},
    {"UC WRITE_LAST_IMMEDIATE", 0x29, 16},
    {"UC WRITE_ONLY", 0x2a, 28},
    {"UC WRITE_ONLY_IMMEDIATE", 0x2b, 32},
    {"UD SEND_ONLY", 0x64, 20},
    {"UD SEND_ONLY_IMMEDIATE", 0x65, 24},
    {"CNP", 0x81, 28},
    {"XRC SEND_FIRST", 0xa0, 16},
    {"XRC SEND_MIDDLE", 0xa1, 16},
    {"XRC SEND_LAST", 0xa2, 16},
    {"XRC SEND_LAST_IMMEDIATE", 0xa3, 20},
    {"XRC SEND_ONLY", 0xa4, 16},
    {"XRC SEND_ONLY_IMMEDIATE", 0xa5, 20},
    {"XRC WRITE_FIRST", 0xa6, 32},
    {"XRC WRITE_MIDDLE", 0xa7, 16},
    {"XRC WRITE_LAST", 0xa8, 16},
    {"XRC WRITE_LAST_IMMEDIATE", 0xa9, 20},
    {"XRC WRITE_ONLY", 0xaa, 32},
    {"XRC WRITE_ONLY_IMMEDIATE", 0xab, 36},
    {"XRC READ_REQUEST", 0xac, 32},
    {"XRC READ_RESPONSE_FIRST", 0xad, 16},
    {"XRC READ_RESPONSE_MIDDLE", 0xae, 12},
    {"XRC READ_RESPONSE_LAST", 0xaf, 16},
    {"XRC READ_RESPONSE_ONLY", 0xb0, 16},
    {"XRC ACKNOWLEDGE", 0xb1, 16},
    {"XRC ATOMIC_ACKNOWLEDGE", 0xb2, 24},
    {"XRC COMPARE_SWAP", 0xb3, 44},
    {"XRC FETCH_ADD", 0xb4, 44},
    {"XRC SEND_LAST_INVALIDATE", 0xb6, 20},
    {"XRC SEND_ONLY_INVALIDATE", 0xb7, 20},
    {"XRC FLUSH", 0xbc, 36},
    {"XRC ATOMIC_WRITE", 0xbd, 32},
    {"SRD SEND_ONLY", 0xc4, 36},
    {"SRD SEND_ONLY_IMMEDIATE", 0xc5, 40},
    {"SRD WRITE_ONLY", 0xca, 52},
    {"SRD WRITE_ONLY_IMMEDIATE", 0xcb, 56},
    {"SRD READ_REQUEST", 0xcc, 52},
    {"SRD READ_RESPONSE_ONLY", 0xd0, 36},
    {"SRD ACKNOWLEDGE", 0xd1, 36},
    {"SRD HELLO", 0xd8, 36},
    {"SRD WELCOME", 0xd9, 36},
    {"DC HELLO", 0xf8, 36},
    {"DC WELCOME", 0xf9, 36},
};

enum { SPECIFIED = sizeof(specified) / sizeof(*specified) };

/* Every field has a different value, so that a field in the wrong place shows. */
static const struct packet full = {
    .solicited = true,
    .migrated = true,
    .ack_requested = true,
    .pkey = 0x8123,
    .destination = 0x00abcdef,
    .psn = 0x00123456,
    .address = 0x0102030405060708,
    .rkey = 0x11121314,
    .length = 0x21222324,
    .swap_or_add = 0x3132333435363738,
    .compare = 0x4142434445464748,
    .original = 0x5152535455565758,
    .syndrome = 0x61,
    .msn = 0x626364,
    .placement = 0xd,
    .selectivity = 2,
    .immediate = 0x74737271, /* network order, on a little-endian machine */
    .invalidate_key = 0x81828384,
    .qkey = 0x91929394,
    .source = 0xa2a3a4,
    .srq = 0xb2b3b4,
};

/* In the place of the AtomicETH. */
static const struct srd_header srd = {
    .epoch = 0xc1c2c3c4, .cookie = 0xd1d2d3d4, .number = 0xe1e2e3e4, .floor = 0xf1f2f3f4};

static const struct dc_header dc = {
    .key = 0x0102030405060708, .psn = 0x00111213, .turn = 0x2122, .segment = 0x3132};

static unsigned encode_as(uint8_t opcode, uint8_t *to)
{
    struct packet packet = full;
    packet.opcode = opcode;
    if (op_service(opcode) == SERVICE_SRD)
        packet.srd = srd;
    if (op_service(opcode) == SERVICE_DC)
        packet.dc = dc;
    memset(to, 0xee, WIRE_HEADERS_MAX);
    return wire_encode(&packet, to);
}

static void expect_bytes(uint8_t opcode, const char *extension)
{
    static const char bth[] = "\xc0\x81\x23\x00\xab\xcd\xef\x80\x12\x34\x56";
    uint8_t bytes[WIRE_HEADERS_MAX];
    unsigned length = encode_as(opcode, bytes);
    assert_int_equal(bytes[0], opcode);
    assert_memory_equal(bytes + 1, bth, 11);
    assert_memory_equal(bytes + 12, extension, length - 12);
    assert_int_equal(bytes[length], 0xee);
}

#define RETH_BYTES "\1\2\3\4\5\6\7\10\x11\x12\x13\x14\x21\x22\x23\x24"
#define ATOMIC_BYTES "\1\2\3\4\5\6\7\10\x11\x12\x13\x14\x31\x32\x33\x34\x35\x36\x37\x38\x41\x42\x43\x44\x45\x46\x47\x48"
#define FETH_BYTES "\0\0\0\x2d"
#define AETH_BYTES "\x61\x62\x63\x64"
#define DETH_BYTES "\x91\x92\x93\x94\0\xa2\xa3\xa4"
#define XRCETH_BYTES "\0\xb2\xb3\xb4"
#define IMMEDIATE_BYTES "\x71\x72\x73\x74"
#define SRDETH_BYTES "\xc1\xc2\xc3\xc4\xd1\xd2\xd3\xd4\xe1\xe2\xe3\xe4\xf1\xf2\xf3\xf4"
#define IETH_BYTES "\x81\x82\x83\x84"

static void c9_3_every_extension_header_has_its_place(void **state)
{
    expect_bytes(0x0b, RETH_BYTES IMMEDIATE_BYTES);
    expect_bytes(0x0c, RETH_BYTES);
    expect_bytes(0x11, AETH_BYTES);
    expect_bytes(0x12, AETH_BYTES "\x51\x52\x53\x54\x55\x56\x57\x58");
    expect_bytes(0x13, ATOMIC_BYTES);
    expect_bytes(0x17, IETH_BYTES);
    expect_bytes(0x1c, FETH_BYTES RETH_BYTES);
    expect_bytes(0x1d, RETH_BYTES);
    expect_bytes(0x65, DETH_BYTES IMMEDIATE_BYTES);
    expect_bytes(0x81, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    expect_bytes(0xab, XRCETH_BYTES RETH_BYTES IMMEDIATE_BYTES);
    expect_bytes(0xb1, AETH_BYTES);
    expect_bytes(0xb4, XRCETH_BYTES ATOMIC_BYTES);
    expect_bytes(0xb7, XRCETH_BYTES IETH_BYTES);
    expect_bytes(0xbc, XRCETH_BYTES FETH_BYTES RETH_BYTES);
    expect_bytes(0xbd, XRCETH_BYTES RETH_BYTES);
}

static void each_packet_of_srd_has_its_flow_and_number(void **state)
{
    expect_bytes(0xc4, DETH_BYTES SRDETH_BYTES);
    expect_bytes(0xc5, DETH_BYTES SRDETH_BYTES IMMEDIATE_BYTES);
    expect_bytes(0xca, DETH_BYTES SRDETH_BYTES RETH_BYTES);
    expect_bytes(0xcb, DETH_BYTES SRDETH_BYTES RETH_BYTES IMMEDIATE_BYTES);
    expect_bytes(0xcc, DETH_BYTES SRDETH_BYTES RETH_BYTES);
    expect_bytes(0xd0, DETH_BYTES SRDETH_BYTES);
    expect_bytes(0xd1, DETH_BYTES SRDETH_BYTES);
    expect_bytes(0xd8, DETH_BYTES SRDETH_BYTES);
    expect_bytes(0xd9, DETH_BYTES SRDETH_BYTES);
}

static void a_connection_of_dc_has_its_key_and_first_psn(void **state)
{
    uint8_t bytes[WIRE_HEADERS_MAX];
    struct packet got;
    unsigned headers, pad;
    for (unsigned opcode = 0xf8; opcode <= 0xf9; opcode++) {
        expect_bytes((uint8_t)opcode, DETH_BYTES "\1\2\3\4\5\6\7\10\0\x11\x12\x13\x21\x22\x31\x32");
        assert_int_equal(wire_decode(bytes, encode_as((uint8_t)opcode, bytes), &got, &headers, &pad), WIRE_FINE);
        assert_memory_equal(&got.dc, &dc, sizeof dc);
    }
}

static void the_header_of_srd_is_read_as_it_was_written(void **state)
{
    for (unsigned opcode = 0xc0; opcode < 0xe0; opcode++) {
        uint8_t bytes[WIRE_HEADERS_MAX];
        struct packet got;
        unsigned headers, pad;
        if (!op_find((uint8_t)opcode))
            continue;
        unsigned length = encode_as((uint8_t)opcode, bytes);
        assert_int_equal(wire_decode(bytes, length, &got, &headers, &pad), WIRE_FINE);
        assert_memory_equal(&got.srd, &srd, sizeof srd);
        assert_int_equal(got.source, full.source);
        assert_int_equal(wire_decode(bytes, length - 1, &got, &headers, &pad), WIRE_TRUNCATED);
        assert_int_equal(got.srd.epoch, 0);
    }
}

/* A refusal goes back to the flow and number of the request; answers are not refused, nor is another service. */
static void a_refusal_of_srd_names_the_number_that_it_answers(void **state)
{
    struct packet packet = full, refusal;
    packet.opcode = 0xc4;
    packet.srd = srd;
    assert_true(srd_refusal(&packet, &refusal));
    assert_int_equal(refusal.opcode, 0xd1);
    assert_int_equal(refusal.destination, full.source);
    assert_int_equal(refusal.source, full.destination);
    assert_int_equal(refusal.srd.epoch, srd.epoch);
    assert_int_equal(refusal.srd.cookie, srd.cookie);
    assert_int_equal(refusal.srd.number, srd.number);
    assert_int_equal(refusal.srd.floor, SRD_NO_QP);
    packet.opcode = 0xd8;
    assert_true(srd_refusal(&packet, &refusal));
    static const uint8_t unanswered[] = {0xd0, 0xd1, 0xd9, 0x64, 0xc0};
    for (unsigned i = 0; i < sizeof unanswered; i++) {
        packet.opcode = unanswered[i];
        assert_false(srd_refusal(&packet, &refusal));
    }
}

static void c9_2_1_the_table_has_what_the_specification_lists_and_no_more(void **state)
{
    unsigned found = 0;
    for (unsigned opcode = 0; opcode < 256; opcode++)
        found += op_find((uint8_t)opcode) != NULL;
    assert_int_equal(found, SPECIFIED);
    for (unsigned i = 0; i < SPECIFIED; i++) {
        const struct op *op = op_find(specified[i].opcode);
        assert_non_null(op);
        assert_string_equal(op->name, specified[i].name);
        assert_int_equal(op->headers, specified[i].headers);
        assert_true(op->headers <= WIRE_HEADERS_MAX);
    }
}

static void flags_follow_from_the_name(void **state)
{
    for (unsigned i = 0; i < SPECIFIED; i++) {
        const char *name = specified[i].name;
        uint32_t flags = op_find(specified[i].opcode)->flags;
        bool inside = strstr(name, "MIDDLE") != NULL;
        assert_int_equal(!!(flags & OP_START), !inside && !strstr(name, "LAST"));
        assert_int_equal(!!(flags & OP_END), !inside && !strstr(name, "FIRST"));
        assert_int_equal(!!(flags & OP_SEND), strstr(name, "SEND") != NULL);
        assert_int_equal(!!(flags & OP_WRITE), strstr(name, " WRITE") != NULL);
        assert_int_equal(!!(flags & OP_READ), strstr(name, "READ_REQUEST") != NULL);
        assert_int_equal(!!(flags & OP_ATOMIC), strstr(name, "SWAP") || strstr(name, "ADD"));
        assert_int_equal(!!(flags & OP_ATOMIC_WRITE), strstr(name, "ATOMIC_WRITE") != NULL);
        assert_int_equal(!!(flags & OP_FLUSH), strstr(name, "FLUSH") != NULL);
        assert_int_equal(!!(flags & OP_RESPONSE),
                         strstr(name, "RESPONSE") || strstr(name, "ACKN") || strstr(name, "WELCOME"));
        assert_int_equal(!!(flags & OP_PAYLOAD), strstr(name, "SEND") || strstr(name, "WRITE") ||
                                                     strstr(name, "RESPONSE") || strstr(name, "SRD ACKN"));
    }
}

static void payload_is_possible_only_where_the_operation_has_it(void **state)
{
    for (unsigned i = 0; i < SPECIFIED; i++) {
        struct packet packet = {.opcode = specified[i].opcode};
        uint32_t flags = op_find(packet.opcode)->flags;
        bool one_size = flags & OP_ATOMIC_WRITE, any_size = !one_size && (flags & OP_PAYLOAD);
        assert_int_equal(wire_check_payload(&packet, 0), one_size ? WIRE_UNEXPECTED : WIRE_FINE);
        assert_int_equal(wire_check_payload(&packet, 8), one_size || any_size ? WIRE_FINE : WIRE_UNEXPECTED);
        assert_int_equal(wire_check_payload(&packet, 9), any_size ? WIRE_FINE : WIRE_UNEXPECTED);
    }
}

/* The reserved bits of a FETH are ignored (annex A19). */
static void a19_a_flush_is_read_from_its_four_bits_and_two(void **state)
{
    uint8_t bytes[WIRE_HEADERS_MAX] = {0x1c, [12] = 0xff, 0xff, 0xff, 0xd2};
    struct packet got;
    unsigned headers, pad;
    assert_int_equal(wire_decode(bytes, sizeof(bytes), &got, &headers, &pad), WIRE_FINE);
    assert_int_equal(got.placement, 2);
    assert_int_equal(got.selectivity, 1);
}

static enum wire_fault decode(const uint8_t *bytes, size_t length)
{
    struct packet packet;
    unsigned headers, pad;
    return wire_decode(bytes, length, &packet, &headers, &pad);
}

static void c9_6_1_every_truncation_is_a_fault(void **state)
{
    for (unsigned opcode = 0; opcode < 256; opcode++)
        for (unsigned length = 0; length <= WIRE_HEADERS_MAX; length++) {
            uint8_t *bytes = calloc(1, length + 1); /* a separate block, so that ASan sees a read after the end */
            bytes[0] = (uint8_t)opcode;
            uint8_t *exact = realloc(bytes, length ? length : 1);
            const struct op *op = op_find((uint8_t)opcode);
            enum wire_fault expected = length < 12            ? WIRE_TRUNCATED
                                       : !op                  ? WIRE_OPCODE
                                       : length < op->headers ? WIRE_TRUNCATED
                                                              : WIRE_FINE;
            assert_int_equal(decode(exact, length), expected);
            free(exact);
        }
}

static void c9_6_1_version_and_misplaced_pad_are_faults(void **state)
{
    uint8_t send[WIRE_HEADERS_MAX] = {0x04, 0x01}, ack[WIRE_HEADERS_MAX] = {0x11, 0x20};
    assert_int_equal(decode(send, sizeof(send)), WIRE_VERSION);
    send[1] = 0x30;
    assert_int_equal(decode(send, sizeof(send)), WIRE_FINE);
    assert_int_equal(decode(ack, sizeof(ack)), WIRE_PAD);
}

static void c9_2_4_the_pad_count_completes_the_payload(void **state)
{
    for (uint32_t length = 0; length < 9; length++) {
        struct iovec piece = {(void *)"12345678", length};
        struct packet packet = {.opcode = 0x04, .payload = {.length = length, .count = 1, .pieces = &piece}}, got;
        uint8_t bytes[WIRE_HEADERS_MAX];
        unsigned headers, pad;
        wire_encode(&packet, bytes);
        assert_int_equal(wire_decode(bytes, 12, &got, &headers, &pad), WIRE_FINE);
        assert_int_equal((length + pad) % 4, 0);
        assert_true(pad < 4);
        assert_null(got.payload.pieces);
        assert_int_equal(got.payload.length, 0);
    }
}

static void nothing_of_an_earlier_packet_is_left(void **state)
{
    static const struct packet nothing;
    struct packet got;
    uint8_t zeros[WIRE_HEADERS_MAX] = {0x04}, bad[WIRE_HEADERS_MAX] = {0x04, 0x01};
    unsigned headers, pad;
    for (unsigned round = 0; round < 2; round++) {
        memset(&got, 0xff, sizeof(got));
        wire_decode(round ? bad : zeros, WIRE_HEADERS_MAX, &got, &headers, &pad);
        got.opcode = 0;
        assert_true(same_headers(&got, &nothing));
        assert_null(got.grh);
        assert_int_equal(got.payload.length + got.payload.count + got.payload.by_reference, 0);
        assert_null(got.payload.pieces);
        assert_null(got.payload.source);
        assert_true(got.payload.pull == NULL);
    }
}

static void random_packets_survive_encoding_and_decoding(void **state)
{
    for (unsigned i = 0; i < 300000; i++) {
        struct packet sent = draw_packet(), got;
        uint8_t bytes[WIRE_HEADERS_MAX];
        unsigned headers, pad, length = wire_encode(&sent, bytes);
        assert_int_equal(wire_decode(bytes, length, &got, &headers, &pad), WIRE_FINE);
        assert_int_equal(headers, length);
        assert_true(same_headers(&sent, &got));
    }
}

/* Bytes that decode are encoded to the same bytes, except reserved bits, which are 0 when sent; so the second time
 * around nothing may change at all. */
static void random_bytes_give_a_fault_or_a_packet_that_encodes_again(void **state)
{
    unsigned fine = 0;
    for (unsigned i = 0; i < 300000; i++) {
        uint8_t bytes[WIRE_HEADERS_MAX], again[WIRE_HEADERS_MAX];
        draw_bytes(bytes, sizeof(bytes));
        bytes[1] &= draw() & 1 ? 0xf0 : 0xff;
        struct packet first, second;
        unsigned headers, pad;
        if (wire_decode(bytes, draw() % (WIRE_HEADERS_MAX + 1), &first, &headers, &pad) != WIRE_FINE)
            continue;
        fine++;
        assert_true(pad == 0 || op_find(first.opcode)->flags & OP_PAYLOAD);
        assert_int_equal(wire_encode(&first, again), headers);
        assert_int_equal(wire_decode(again, headers, &second, &headers, &pad), WIRE_FINE);
        assert_true(same_headers(&first, &second));
    }
    assert_true(fine > 10000);
}

static void a_description_names_what_the_packet_has(void **state)
{
    struct iovec piece = {(void *)"12345678", 8};
    struct payload eight = {.length = 8, .count = 1, .pieces = &piece};
    char line[256];
    struct packet send = {
        .opcode = 0x04, .pkey = 0xffff, .destination = 0x11, .psn = 42, .ack_requested = true, .payload = eight};
    assert_string_equal(wire_describe(&send, line, sizeof(line)), "RC SEND_ONLY qp 0x11 psn 42 ack 8 bytes");
    struct packet nak = {.opcode = 0x11, .pkey = 0xffff, .destination = 0x12, .psn = 7, .syndrome = 0x62, .msn = 3};
    assert_string_equal(wire_describe(&nak, line, sizeof(line)),
                        "RC ACKNOWLEDGE qp 0x12 psn 7 nak remote access msn 3");
    struct packet datagram = full;
    datagram.opcode = 0x65;
    datagram.payload = eight;
    assert_string_equal(wire_describe(&datagram, line, sizeof(line)),
                        "UD SEND_ONLY_IMMEDIATE qp 0xabcdef psn 1193046 pkey 0x8123 solicited ack qkey 0x91929394 from "
                        "0xa2a3a4 immediate 0x71727374 8 bytes");
    struct packet flush = {
        .opcode = 0x1c, .pkey = 0xffff, .destination = 1, .address = 16, .rkey = 2, .length = 3, .placement = 3};
    assert_string_equal(wire_describe(&flush, line, sizeof(line)),
                        "RC FLUSH qp 0x1 psn 0 global persistent range address 0x10 rkey 0x2 length 3");
    flush.placement = 8;
    flush.selectivity = 1;
    assert_string_equal(wire_describe(&flush, line, sizeof(line)),
                        "RC FLUSH qp 0x1 psn 0 placement 0x8 region address 0x10 rkey 0x2 length 3");
    struct packet unknown = {.opcode = 0x15};
    assert_string_equal(wire_describe(&unknown, line, sizeof(line)), "unknown opcode 0x15");
}

static void a_description_of_srd_names_flow_number_and_status(void **state)
{
    struct iovec piece = {(void *)"12345678", 8};
    struct packet packet = {.opcode = 0xc4,
                            .pkey = 0xffff,
                            .destination = 0x11,
                            .psn = 5,
                            .source = 0x12,
                            .qkey = 7,
                            .srd = {0xa, 0xb, 5, 3},
                            .payload = {.length = 8, .count = 1, .pieces = &piece}};
    char line[256];
    assert_string_equal(wire_describe(&packet, line, sizeof(line)),
                        "SRD SEND_ONLY qp 0x11 psn 5 qkey 0x7 from 0x12 epoch 0xa cookie 0xb number 5 floor 3 8 bytes");
    packet.opcode = 0xd1;
    assert_string_equal(wire_describe(&packet, line, sizeof(line)),
                        "SRD ACKNOWLEDGE qp 0x11 psn 5 qkey 0x7 from 0x12 epoch 0xa cookie 0xb number 5 8 bytes");
    packet.payload.length = 0;
    packet.srd.floor = SRD_NO_RECEIVE;
    assert_string_equal(
        wire_describe(&packet, line, sizeof(line)),
        "SRD ACKNOWLEDGE qp 0x11 psn 5 qkey 0x7 from 0x12 epoch 0xa cookie 0xb number 5 status 10 0 bytes");
    packet.opcode = 0xd9;
    assert_string_equal(wire_describe(&packet, line, sizeof(line)),
                        "SRD WELCOME qp 0x11 psn 5 qkey 0x7 from 0x12 epoch 0xa cookie 0xb number 5");
}

static void a_description_of_dc_names_key_and_turn(void **state)
{
    struct packet packet = {.opcode = 0xf8,
                            .pkey = 0xffff,
                            .destination = 0x11,
                            .source = 0x12,
                            .dc = {.key = 0xabc, .psn = 7, .turn = 3, .segment = 1024}};
    char line[256];
    assert_string_equal(wire_describe(&packet, line, sizeof(line)),
                        "DC HELLO qp 0x11 psn 0 qkey 0x0 from 0x12 key 0xabc first_psn 7 turn 3 segment 1024");
    packet.opcode = 0xf9;
    packet.dc.segment = DC_WRONG_KEY;
    assert_string_equal(wire_describe(&packet, line, sizeof(line)),
                        "DC WELCOME qp 0x11 psn 0 qkey 0x0 from 0x12 key 0xabc first_psn 7 turn 3 status 1");
}

static void a_description_is_cut_where_the_room_ends(void **state)
{
    for (unsigned i = 0; i < SPECIFIED; i++) {
        struct packet packet = full;
        packet.opcode = specified[i].opcode;
        char whole[512];
        wire_describe(&packet, whole, sizeof(whole));
        assert_true(strlen(whole) < sizeof(whole) - 1);
        for (size_t size = 1; size <= strlen(whole) + 1; size++) {
            char *cut = malloc(size);
            assert_ptr_equal(wire_describe(&packet, cut, size), cut);
            assert_int_equal(strlen(cut), size - 1);
            assert_memory_equal(cut, whole, size - 1);
            free(cut);
        }
    }
}

static void every_fault_has_a_phrase_of_its_own(void **state)
{
    for (int a = WIRE_FINE; a <= WIRE_ICRC; a++)
        for (int b = a + 1; b <= WIRE_ICRC + 1; b++)
            assert_string_not_equal(wire_fault_text(a), wire_fault_text(b));
}

static void c9_7_1_sequence_numbers_compare_across_the_wrap(void **state)
{
    assert_int_equal(psn_add(PSN_MASK, 1), 0);
    assert_int_equal(psn_distance(0, PSN_MASK), 1);
    assert_int_equal(psn_distance(PSN_MASK, 0), -1);
    assert_int_equal(psn_distance(0x7fffff, 0), 0x7fffff);
    assert_int_equal(psn_distance(0x800000, 0), -0x800000);
}

TESTS(c9_2_1_the_table_has_what_the_specification_lists_and_no_more,
      flags_follow_from_the_name,
      c9_3_every_extension_header_has_its_place,
      each_packet_of_srd_has_its_flow_and_number,
      the_header_of_srd_is_read_as_it_was_written,
      a_refusal_of_srd_names_the_number_that_it_answers,
      payload_is_possible_only_where_the_operation_has_it,
      a19_a_flush_is_read_from_its_four_bits_and_two,
      c9_6_1_every_truncation_is_a_fault,
      c9_6_1_version_and_misplaced_pad_are_faults,
      c9_2_4_the_pad_count_completes_the_payload,
      nothing_of_an_earlier_packet_is_left,
      random_packets_survive_encoding_and_decoding,
      random_bytes_give_a_fault_or_a_packet_that_encodes_again,
      a_description_names_what_the_packet_has,
      a_description_of_srd_names_flow_number_and_status,
      a_connection_of_dc_has_its_key_and_first_psn,
      a_description_of_dc_names_key_and_turn,
      a_description_is_cut_where_the_room_ends,
      every_fault_has_a_phrase_of_its_own,
      c9_7_1_sequence_numbers_compare_across_the_wrap)
