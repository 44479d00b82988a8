#include "wire/mad.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/random.h"

enum { ATTRIBUTE_AT = 16, DATA_AT = 24, INFORMATION_LENGTH_AT = DATA_AT + 5 };

static struct mad draw_mad(enum mad_message message)
{
    struct mad mad = {.message = message, .transaction = draw(), .request = (uint32_t)draw(), .service = draw()};
    if (message == MAD_SIDR_REQ) {
        mad.sidr_req.pkey = (uint16_t)draw();
        draw_bytes(mad.sidr_req.private_data, MAD_REQUEST_PRIVATE);
        return mad;
    }
    mad.sidr_rep.status = (uint8_t)draw();
    mad.sidr_rep.information_length = draw() % (MAD_REPLY_INFORMATION + 1);
    mad.sidr_rep.qp = draw() & 0xffffff;
    mad.sidr_rep.qkey = (uint32_t)draw();
    draw_bytes(mad.sidr_rep.information, MAD_REPLY_INFORMATION);
    draw_bytes(mad.sidr_rep.private_data, MAD_REPLY_PRIVATE);
    return mad;
}

/* Both memberwise: a union's rest is zero in each. */
static void assert_same(const struct mad *a, const struct mad *b)
{
    assert_int_equal(a->message, b->message);
    assert_true(a->transaction == b->transaction && a->service == b->service && a->request == b->request);
    if (a->message == MAD_SIDR_REQ) {
        assert_int_equal(a->sidr_req.pkey, b->sidr_req.pkey);
        assert_memory_equal(a->sidr_req.private_data, b->sidr_req.private_data, MAD_REQUEST_PRIVATE);
        return;
    }
    assert_int_equal(a->sidr_rep.status, b->sidr_rep.status);
    assert_int_equal(a->sidr_rep.information_length, b->sidr_rep.information_length);
    assert_int_equal(a->sidr_rep.qp, b->sidr_rep.qp);
    assert_int_equal(a->sidr_rep.qkey, b->sidr_rep.qkey);
    assert_memory_equal(a->sidr_rep.information, b->sidr_rep.information, MAD_REPLY_INFORMATION);
    assert_memory_equal(a->sidr_rep.private_data, b->sidr_rep.private_data, MAD_REPLY_PRIVATE);
}

static void what_is_encoded_decodes_to_the_same(void **state)
{
    uint8_t bytes[MAD_BYTES];
    for (int i = 0; i < 1000; i++) {
        struct mad mad = draw_mad(i % 2 ? MAD_SIDR_REQ : MAD_SIDR_REP), again;
        mad_encode(&mad, bytes);
        assert_int_equal(mad_decode(bytes, sizeof bytes, &again), MAD_FINE);
        assert_same(&mad, &again);
    }
}

/* IBA 13.4.3 (the header), tables 119 and 120 (the messages), byte for byte. */
static void a_request_has_its_fields_where_they_belong(void **state)
{
    static const uint8_t expected[] = {1,    7,    2, 3,    0,    0,    0,    0,    1,    2,    3,    4,    5,    6,
                                       7,    8,    0, 0x17, 0,    0,    0,    0,    0,    0,    0xa1, 0xa2, 0xa3, 0xa4,
                                       0xff, 0xfe, 0, 0,    0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 'x'};
    uint8_t bytes[MAD_BYTES];
    struct mad mad = {.message = MAD_SIDR_REQ,
                      .transaction = 0x0102030405060708,
                      .request = 0xa1a2a3a4,
                      .service = 0x1011121314151617,
                      .sidr_req = {.pkey = 0xfffe, .private_data = "x"}};
    mad.sidr_req.private_data[MAD_REQUEST_PRIVATE - 1] = 'y';
    mad_encode(&mad, bytes);
    assert_memory_equal(bytes, expected, sizeof expected);
    assert_int_equal(bytes[MAD_BYTES - 1], 'y');
}

static void a_reply_has_its_fields_where_they_belong(void **state)
{
    static const uint8_t expected[] = {0xa1, 0xa2, 0xa3, 0xa4, 1,    3,    0,    0,    0x51,
                                       0x52, 0x53, 0,    0x10, 0x11, 0x12, 0x13, 0x14, 0x15,
                                       0x16, 0x17, 0x61, 0x62, 0x63, 0x64, 'i',  'n',  'f'};
    uint8_t bytes[MAD_BYTES];
    struct mad mad = {.message = MAD_SIDR_REP,
                      .request = 0xa1a2a3a4,
                      .service = 0x1011121314151617,
                      .sidr_rep = {.status = MAD_SIDR_NOT_SUPPORTED,
                                   .information_length = 3,
                                   .qp = 0x515253,
                                   .qkey = 0x61626364,
                                   .information = "inf",
                                   .private_data = "private"}};
    mad_encode(&mad, bytes);
    assert_int_equal(bytes[ATTRIBUTE_AT + 1], 0x18);
    assert_memory_equal(bytes + DATA_AT, expected, sizeof expected);
    assert_string_equal((char *)bytes + DATA_AT + 96, "private");
}

static enum mad_fault decode_with(enum mad_message message, size_t at, uint8_t value)
{
    uint8_t bytes[MAD_BYTES];
    struct mad mad = draw_mad(message);
    mad_encode(&mad, bytes);
    bytes[at] = value;
    return mad_decode(bytes, sizeof bytes, &mad);
}

static void what_is_not_of_the_class_is_refused(void **state)
{
    enum { BASE_AT, CLASS_AT, CLASS_VERSION_AT, METHOD_AT };
    assert_int_equal(decode_with(MAD_SIDR_REQ, BASE_AT, 2), MAD_CLASS);
    assert_int_equal(decode_with(MAD_SIDR_REQ, CLASS_AT, 0x03), MAD_CLASS); /* subnet administration */
    assert_int_equal(decode_with(MAD_SIDR_REQ, CLASS_VERSION_AT, 1), MAD_CLASS);
    assert_int_equal(decode_with(MAD_SIDR_REQ, METHOD_AT, 0x01), MAD_CLASS); /* Get */
    assert_int_equal(decode_with(MAD_SIDR_REQ, METHOD_AT, 0x83), MAD_CLASS); /* a response bit */
}

static void other_messages_are_refused(void **state)
{
    assert_int_equal(decode_with(MAD_SIDR_REQ, ATTRIBUTE_AT + 1, 0x10), MAD_MESSAGE); /* REQ */
    assert_int_equal(decode_with(MAD_SIDR_REQ, ATTRIBUTE_AT + 1, 0), MAD_MESSAGE);
    assert_int_equal(decode_with(MAD_SIDR_REP, ATTRIBUTE_AT, 1), MAD_MESSAGE);
}

static void lengths_are_checked(void **state)
{
    uint8_t bytes[MAD_BYTES + 4];
    struct mad mad = draw_mad(MAD_SIDR_REQ);
    mad_encode(&mad, bytes);
    for (size_t length = 0; length < MAD_BYTES; length++)
        assert_int_equal(mad_decode(bytes, length, &mad), MAD_TRUNCATED);
    assert_int_equal(mad_decode(bytes, sizeof bytes, &mad), MAD_FINE);
    assert_int_equal(decode_with(MAD_SIDR_REP, INFORMATION_LENGTH_AT, MAD_REPLY_INFORMATION), MAD_FINE);
    assert_int_equal(decode_with(MAD_SIDR_REP, INFORMATION_LENGTH_AT, MAD_REPLY_INFORMATION + 1), MAD_TRUNCATED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_encoded_decodes_to_the_same),
        cmocka_unit_test(a_request_has_its_fields_where_they_belong),
        cmocka_unit_test(a_reply_has_its_fields_where_they_belong),
        cmocka_unit_test(what_is_not_of_the_class_is_refused),
        cmocka_unit_test(other_messages_are_refused),
        cmocka_unit_test(lengths_are_checked),
    };
    return cmocka_run_group_tests_name("mad", tests, NULL, NULL);
}
