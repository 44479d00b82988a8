#include "wire/cm/cm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/testing/group.h"
#include "wire/bytes.h"
#include "wire/cm/cm_fields.h"
#include "wire/cm/cm_ip.h"
#include "wire/testing/random.h"

enum { ATTRIBUTE_AT = 16, DATA_AT = 24 };

/* Random bytes with the head of a message that exists. */
static void draw_message(uint8_t bytes[MAD_BYTES], enum cm_attribute attribute)
{
    draw_bytes(bytes, MAD_BYTES);
    memcpy(bytes, "\1\7\2\3", 4);
    bytes_put16(bytes + ATTRIBUTE_AT, (uint16_t)attribute);
    if (attribute == CM_REJ)
        bytes[DATA_AT + 9] = (uint8_t)(draw() % (CM_INFORMATION_MAX + 1) << 1);
    if (attribute == CM_SIDR_REP)
        bytes[DATA_AT + 5] = (uint8_t)(draw() % (CM_INFORMATION_MAX + 1));
}

static void what_is_encoded_decodes_to_the_same(void **state)
{
    uint8_t bytes[MAD_BYTES];
    struct cm_message message, again;
    for (int i = 0; i < 1100; i++) {
        draw_message(bytes, CM_REQ + i % 11);
        assert_int_equal(cm_decode(bytes, sizeof bytes, &message), CM_FINE);
        cm_encode(&message, bytes);
        assert_int_equal(cm_decode(bytes, sizeof bytes, &again), CM_FINE);
        assert_memory_equal(&message, &again, sizeof message);
    }
}

/* All bits after the head that the specification does not reserve are kept (IBA tables 103 to 120, with the vendor
 * IDs of annex A14). */
static void all_but_the_reserved_bits_are_kept(void **state)
{
    static const unsigned reserved[] = {
        [CM_REQ - CM_REQ] = 8 + 32 + 2 * (6 + 3 + 3),
        [CM_MRA - CM_REQ] = 6 + 3,
        [CM_REJ - CM_REQ] = 6 + 1,
        [CM_REP - CM_REQ] = 4,
        [CM_RTU - CM_REQ] = 0,
        [CM_DREQ - CM_REQ] = 8,
        [CM_DREP - CM_REQ] = 0,
        [CM_SIDR_REQ - CM_REQ] = 16,
        [CM_SIDR_REP - CM_REQ] = 0,
        [CM_LAP - CM_REQ] = 0,
        [CM_APR - CM_REQ] = 0,
    };
    for (unsigned i = 0; i < 11; i++) {
        uint8_t bytes[MAD_BYTES];
        struct cm_message message;
        memset(bytes, 0xff, sizeof bytes);
        memcpy(bytes, "\1\7\2\3", 4);
        bytes_put16(bytes + ATTRIBUTE_AT, (uint16_t)(CM_REQ + i));
        cm_decode(bytes, sizeof bytes, &message); /* lengths of information are too long for all bits set */
        cm_encode(&message, bytes);
        unsigned zeros = 0;
        for (unsigned at = DATA_AT; at < MAD_BYTES; at++)
            zeros += 8u - (unsigned)__builtin_popcount(bytes[at]);
        if (zeros != reserved[i])
            fail_msg("%s keeps all but %u bits", cm_name(CM_REQ + i), zeros);
    }
}

/* The bytes begin with the text's, which are hexadecimal, in groups of four. */
static void assert_bytes(const uint8_t *bytes, const char *text)
{
    for (unsigned at = 0, used; sscanf(text, "%8[0-9a-f]%n", (char[9]){0}, &used) == 1;
         text += used, text += *text == ' ')
        for (unsigned i = 0; i < used; i += 2, at++) {
            unsigned byte;
            sscanf(text + i, "%2x", &byte);
            if (bytes[at] != byte)
                fail_msg("byte %u is %02x, not %02x", at, bytes[at], byte);
        }
}

static void assert_encodes(const struct cm_message *message, const char *expected)
{
    uint8_t bytes[MAD_BYTES];
    cm_encode(message, bytes);
    assert_bytes(bytes + DATA_AT, expected);
}

/* IBA 13.4.3 */
static void the_common_header(void **state)
{
    static const char expected[] = "01070203 00000000 01020304 05060708 00140000 31323334";
    uint8_t bytes[MAD_BYTES];
    cm_encode(&(struct cm_message){.attribute = CM_RTU, .transaction = 0x0102030405060708, .modifier = 0x31323334},
              bytes);
    assert_bytes(bytes, expected);
}

/* IBA table 103, byte for byte. */
static void req_has_its_fields_where_they_belong(void **state)
{
    static const char expected[] = "a1a2a3a4 00b1b2b3 10111213 14151617 20212223 24252627 00000000 31323334 "
                                   "41424344 45464748 494a4ba7 5152539e fffe3df9 61626364 6c6f6361 6c000000 "
                                   "00000000 00000000 72656d6f 74650000 00000000 00000000 b98c802a 71409890 "
                                   "00000001";
    struct cm_message message = {.attribute = CM_REQ,
                                 .local_id = 0xa1a2a3a4,
                                 .req = {.vendor = 0xb1b2b3,
                                         .service = 0x1011121314151617,
                                         .guid = 0x2021222324252627,
                                         .qkey = 0x31323334,
                                         .qpn = 0x414243,
                                         .responder_resources = 0x44,
                                         .local_eecn = 0x454647,
                                         .initiator_depth = 0x48,
                                         .remote_eecn = 0x494a4b,
                                         .remote_response_timeout = 20,
                                         .transport = CM_TRANSPORT_EXTENDED,
                                         .flow_control = 1,
                                         .starting_psn = 0x515253,
                                         .local_response_timeout = 19,
                                         .retry_count = 6,
                                         .pkey = 0xfffe,
                                         .mtu = 3,
                                         .rdc_exists = 1,
                                         .rnr_retry_count = 5,
                                         .max_cm_retries = 15,
                                         .srq = 1,
                                         .extended_transport = CM_EXTENDED_XRC,
                                         .primary = {.local_lid = 0x6162,
                                                     .remote_lid = 0x6364,
                                                     .local_gid = "local",
                                                     .remote_gid = "remote",
                                                     .flow_label = 0xb98c8,
                                                     .rate = 0x2a,
                                                     .traffic_class = 0x71,
                                                     .hop_limit = 64,
                                                     .sl = 9,
                                                     .subnet_local = 1,
                                                     .ack_timeout = 18},
                                         .alternate = {.remote_lid = 1, .ack_timeout = 17}},
                                 .private_data = "private"};
    uint8_t bytes[MAD_BYTES];
    cm_encode(&message, bytes);
    assert_bytes(bytes + DATA_AT, expected);
    assert_int_equal(bytes[DATA_AT + 139], 17 << 3);
    assert_string_equal((char *)bytes + DATA_AT + 140, "private");
}

static void mra_and_rej_have_their_fields_where_they_belong(void **state)
{
    static const char mra[] = "00000001 00000002 40c078";
    static const char rej[] = "00000001 00000002 8006001c 696e6600";
    struct cm_message message = {.attribute = CM_MRA,
                                 .local_id = 1,
                                 .remote_id = 2,
                                 .mra = {.about = CM_ABOUT_REP, .service_timeout = 24},
                                 .private_data = "x"};
    assert_encodes(&message, mra);
    message.attribute = CM_REJ;
    message.rej = (struct cm_rej){
        .about = CM_ABOUT_OTHER, .information_length = 3, .reason = CM_REJECT_CONSUMER, .information = "inf"};
    assert_encodes(&message, rej);
    uint8_t bytes[MAD_BYTES];
    cm_encode(&message, bytes);
    assert_string_equal((char *)bytes + DATA_AT + 84, "x");
}

static void rep_has_its_fields_where_they_belong(void **state)
{
    static const char expected[] = "00000001 00000002 31323334 414243b1 515253b2 616263b3 07097dd0 20212223 "
                                   "24252627 70";
    struct cm_message message = {.attribute = CM_REP,
                                 .local_id = 1,
                                 .remote_id = 2,
                                 .rep = {.vendor = 0xb1b2b3,
                                         .qkey = 0x31323334,
                                         .qpn = 0x414243,
                                         .eecn = 0x515253,
                                         .starting_psn = 0x616263,
                                         .responder_resources = 7,
                                         .initiator_depth = 9,
                                         .target_ack_delay = 15,
                                         .failover = 2,
                                         .flow_control = 1,
                                         .rnr_retry_count = 6,
                                         .srq = 1,
                                         .guid = 0x2021222324252627},
                                 .private_data = "p"};
    assert_encodes(&message, expected);
}

static void rtu_dreq_and_drep_have_their_fields_where_they_belong(void **state)
{
    static const char plain[] = "00000001 00000002 7800";
    static const char dreq[] = "00000001 00000002 41424300 7800";
    struct cm_message message = {.attribute = CM_RTU, .local_id = 1, .remote_id = 2, .private_data = "x"};
    assert_encodes(&message, plain);
    message.attribute = CM_DREP;
    assert_encodes(&message, plain);
    message.attribute = CM_DREQ;
    message.dreq.remote_qpn = 0x414243;
    assert_encodes(&message, dreq);
}

/* IBA tables 119 and 120 */
static void resolution_has_its_fields_where_they_belong(void **state)
{
    static const char req[] = "a1a2a3a4 fffe0000 10111213 14151617 78";
    static const char rep[] = "a1a2a3a4 0103b1b2 515253b3 10111213 14151617 61626364 696e66";
    struct cm_message request = {.attribute = CM_SIDR_REQ,
                                 .local_id = 0xa1a2a3a4,
                                 .sidr_req = {.pkey = 0xfffe, .service = 0x1011121314151617},
                                 .private_data = "x"};
    struct cm_message reply = {.attribute = CM_SIDR_REP,
                               .remote_id = 0xa1a2a3a4,
                               .sidr_rep = {.status = CM_SIDR_UNSUPPORTED,
                                            .information_length = 3,
                                            .vendor = 0xb1b2b3,
                                            .qpn = 0x515253,
                                            .service = 0x1011121314151617,
                                            .qkey = 0x61626364,
                                            .information = "inf"},
                               .private_data = "private"};
    uint8_t bytes[MAD_BYTES];
    assert_encodes(&request, req);
    assert_encodes(&reply, rep);
    cm_encode(&reply, bytes);
    assert_string_equal((char *)bytes + DATA_AT + 96, "private");
}

static void private_data_reaches_to_the_end(void **state)
{
    static const unsigned sizes[] = {92, 222, 148, 196, 224, 220, 224, 216, 136, 224, 224};
    for (unsigned i = 0; i < 11; i++) {
        struct cm_message message = {.attribute = CM_REQ + i};
        uint8_t bytes[MAD_BYTES];
        assert_int_equal(cm_private_size(CM_REQ + i), sizes[i]);
        message.private_data[sizes[i] - 1] = 'y';
        cm_encode(&message, bytes);
        assert_int_equal(bytes[MAD_BYTES - 1], 'y');
    }
    assert_int_equal(cm_private_size(0), 0);
}

/* Values that are too wide don't reach into other fields. */
static void fields_are_cut_to_their_width(void **state)
{
    struct cm_message wide = {.attribute = CM_REQ}, narrow;
    memset(&wide.req, 0xff, sizeof wide.req);
    wide.req.srq = wide.req.qpn = 0;
    uint8_t bytes[MAD_BYTES];
    cm_encode(&wide, bytes);
    assert_int_equal(cm_decode(bytes, sizeof bytes, &narrow), CM_FINE);
    assert_int_equal(narrow.req.qpn, 0);
    assert_int_equal(narrow.req.srq, 0);
    assert_int_equal(narrow.req.max_cm_retries, 15);
    assert_int_equal(narrow.req.primary.flow_label, 0xfffff);
}

static enum cm_fault decode_with(enum cm_attribute attribute, size_t at, uint8_t value)
{
    uint8_t bytes[MAD_BYTES];
    struct cm_message message;
    draw_message(bytes, attribute);
    bytes[at] = value;
    return cm_decode(bytes, sizeof bytes, &message);
}

static void what_is_not_of_the_class_is_refused(void **state)
{
    enum { BASE_AT, CLASS_AT, CLASS_VERSION_AT, METHOD_AT };
    assert_int_equal(decode_with(CM_SIDR_REQ, BASE_AT, 2), CM_CLASS);
    assert_int_equal(decode_with(CM_REQ, CLASS_AT, 0x03), CM_CLASS); /* subnet administration */
    assert_int_equal(decode_with(CM_REP, CLASS_VERSION_AT, 1), CM_CLASS);
    assert_int_equal(decode_with(CM_RTU, METHOD_AT, 0x01), CM_CLASS);  /* Get */
    assert_int_equal(decode_with(CM_DREQ, METHOD_AT, 0x83), CM_CLASS); /* a response bit */
}

static void other_messages_are_refused(void **state)
{
    for (unsigned attribute = 0; attribute < 256; attribute++) {
        uint8_t bytes[MAD_BYTES] = {1, 7, 2, 3, [ATTRIBUTE_AT + 1] = (uint8_t)attribute};
        struct cm_message message;
        assert_int_equal(cm_decode(bytes, sizeof bytes, &message),
                         attribute < CM_REQ || attribute > CM_APR ? CM_ATTRIBUTE : CM_FINE);
    }
    assert_int_equal(decode_with(CM_REQ, ATTRIBUTE_AT, 1), CM_ATTRIBUTE);
    assert_int_equal(decode_with(CM_REQ, ATTRIBUTE_AT, 0xff), CM_ATTRIBUTE);
}

static void lengths_are_checked(void **state)
{
    uint8_t bytes[MAD_BYTES + 4];
    struct cm_message message;
    draw_message(bytes, CM_REQ);
    for (size_t length = 0; length < MAD_BYTES; length++)
        assert_int_equal(cm_decode(bytes, length, &message), CM_TRUNCATED);
    assert_int_equal(cm_decode(bytes, sizeof bytes, &message), CM_FINE);
    assert_int_equal(decode_with(CM_SIDR_REP, DATA_AT + 5, CM_INFORMATION_MAX), CM_FINE);
    assert_int_equal(decode_with(CM_SIDR_REP, DATA_AT + 5, CM_INFORMATION_MAX + 1), CM_LENGTH);
    assert_int_equal(decode_with(CM_REJ, DATA_AT + 9, CM_INFORMATION_MAX << 1 | 1), CM_FINE);
    assert_int_equal(decode_with(CM_REJ, DATA_AT + 9, (CM_INFORMATION_MAX + 1) << 1), CM_LENGTH);
}

/* A program may rely on these fields to find the owner of a message. */
static void replies_name_the_receiver(void **state)
{
    assert_false(cm_is_reply(CM_REQ) || cm_is_reply(CM_SIDR_REQ) || cm_is_reply(0));
    for (unsigned attribute = CM_MRA; attribute <= CM_APR; attribute++)
        assert_int_equal(cm_is_reply(attribute), attribute != CM_SIDR_REQ);
}

/* IBA annex A11 */
static void ip_addressing_has_its_fields_where_they_belong(void **state)
{
    static const uint8_t expected[CM_IP_BYTES] = {0, 4 << 4, 0xe2, 0xfe, [16] = 10, [19] = 1, [32] = 10, [35] = 2};
    struct cm_ip ip = {.version = 4,
                       .source_port = 58110,
                       .source = {[12] = 10, [15] = 1},
                       .destination = {[12] = 10, [15] = 2}},
                 again;
    uint8_t bytes[CM_IP_BYTES];
    cm_ip_encode(&ip, bytes);
    assert_memory_equal(bytes, expected, sizeof expected);
    assert_int_equal(cm_ip_decode(bytes, &again), CM_IP_FINE);
    assert_int_equal(again.source_port, 58110);
    assert_memory_equal(again.source, ip.source, 16);
    assert_memory_equal(again.destination, ip.destination, 16);
    bytes[1] = 6 << 4;
    assert_int_equal(cm_ip_decode(bytes, &again), CM_IP_FINE);
    bytes[1] = 5 << 4;
    assert_int_equal(cm_ip_decode(bytes, &again), CM_IP_ABSENT);
    bytes[0] = 0x10;
    assert_int_equal(cm_ip_decode(bytes, &again), CM_IP_VERSION);
}

static void a_description_names_what_is_there(void **state)
{
    char line[256];
    struct cm_message reject = {.attribute = CM_REJ,
                                .transaction = 0x1234,
                                .local_id = 0xa1,
                                .remote_id = 0xb2,
                                .rej = {.about = CM_ABOUT_REP, .reason = CM_REJECT_CONSUMER},
                                .private_data = "ab"};
    assert_string_equal(cm_describe(&reject, line, sizeof line),
                        "REJ transaction 0x1234 local_id 0xa1 remote_id 0xb2 about 1 reason 28 data 0x6162");
    struct cm_message rep = {.attribute = CM_REP, .rep = {.vendor = 0xb1b2b3, .qpn = 0x11}};
    assert_string_equal(cm_describe(&rep, line, sizeof line), "REP transaction 0x0 qpn 0x11 vendor 0xb1b2b3");
    struct cm_message request = {.attribute = CM_SIDR_REQ, .local_id = 7, .private_data = {[CM_IP_BYTES] = 0xfe}};
    cm_ip_encode(&(struct cm_ip){.version = 6, .source_port = 9, .source = {0xfd, [15] = 1}}, request.private_data);
    assert_string_equal(
        cm_describe(&request, line, sizeof line),
        "SIDR_REQ transaction 0x0 local_id 0x7 ip 6 fd00:0:0:0:0:0:0:1 port 9 > 0:0:0:0:0:0:0:0 data 0xfe");
}

static void a_description_stays_within_its_room(void **state)
{
    uint8_t bytes[MAD_BYTES];
    struct cm_message message;
    char line[2048];
    draw_message(bytes, CM_REQ);
    cm_decode(bytes, sizeof bytes, &message);
    for (size_t room = 1; room < sizeof line; room += 7) {
        memset(line, 'z', sizeof line);
        cm_describe(&message, line, room);
        assert_true(strlen(line) < room);
        assert_int_equal(line[room], 'z');
    }
}

TESTS(what_is_encoded_decodes_to_the_same,
      all_but_the_reserved_bits_are_kept,
      the_common_header,
      req_has_its_fields_where_they_belong,
      mra_and_rej_have_their_fields_where_they_belong,
      rep_has_its_fields_where_they_belong,
      rtu_dreq_and_drep_have_their_fields_where_they_belong,
      resolution_has_its_fields_where_they_belong,
      private_data_reaches_to_the_end,
      fields_are_cut_to_their_width,
      what_is_not_of_the_class_is_refused,
      other_messages_are_refused,
      lengths_are_checked,
      replies_name_the_receiver,
      ip_addressing_has_its_fields_where_they_belong,
      a_description_names_what_is_there,
      a_description_stays_within_its_room)
