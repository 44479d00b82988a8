/* The requester: the effects of answers and their gaps. */
#include "base/testing/group.h"
#include "transport/testing/script.h"

#include <string.h>

/* IBA 9.7.6: a response has a PSN for each of its packets. */
static void c9_7_6_a_read_response_lands_packet_by_packet(void **state)
{
    struct rig *rig = *state;
    uint64_t id = read_under_way(rig, 600);
    arrives(rig, READ_RESPONSE_FIRST, RIG_OURS, .bytes = 256, .fill = 1);
    arrives(rig, READ_RESPONSE_MIDDLE, RIG_OURS + 1, .bytes = 256, .fill = 2);
    ends_nothing(rig);
    arrives(rig, READ_RESPONSE_LAST, RIG_OURS + 2, .bytes = 88, .fill = 3);
    ends(rig, id, IBV_WC_SUCCESS);
    assert_int_equal(rig->memory[0x1000], 1);
    assert_int_equal(rig->memory[0x1000 + 511], 2);
    assert_int_equal(rig->memory[0x1000 + 599], 3);
    assert_int_equal(rig->memory[0x1000 + 600], (uint8_t)((0x1000 + 600) * 31 >> 3));
}

static void c9_4_5_an_atomic_answer_stores_what_was_there(void **state)
{
    struct rig *rig = *state;
    uint64_t original, id = post(rig, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .length = 8, .at = 0x1000);
    sends(rig, FETCH_ADD, RIG_OURS);
    arrives(rig, ATOMIC_ACKNOWLEDGE, RIG_OURS, .packet = {.syndrome = SYNDROME_ACK, .original = 0x1122334455667788});
    ends(rig, id, IBV_WC_SUCCESS);
    memcpy(&original, rig->memory + 0x1000, 8);
    assert_true(original == 0x1122334455667788);
}

/* The memory placement annex answers an atomic write with a READ response without bytes. */
static void a19_an_atomic_write_ends_with_an_empty_read_response(void **state)
{
    struct rig *rig = *state;
    uint64_t id = post(rig, .opcode = IBV_WR_ATOMIC_WRITE, .length = 8);
    sends(rig, ATOMIC_WRITE, RIG_OURS);
    arrives(rig, READ_RESPONSE_ONLY, RIG_OURS, );
    ends(rig, id, IBV_WC_SUCCESS);
}

static void a19_a_flush_ends_with_an_empty_read_response(void **state)
{
    struct rig *rig = *state;
    uint64_t id = post(rig, .opcode = NEWER_WR_FLUSH, .compare_or_add = 64, .swap = 1);
    sends(rig, FLUSH, RIG_OURS);
    arrives(rig, ACKNOWLEDGE, RIG_OURS, .packet = {.syndrome = SYNDROME_ACK}); /* an ACK does not answer it */
    ends_nothing(rig);
    arrives(rig, READ_RESPONSE_ONLY, RIG_OURS, );
    ends(rig, id, IBV_WC_SUCCESS);
}

/* IBA 9.7.6: a response acknowledges the requests before it. */
static void c9_7_6_a_read_response_acknowledges_what_came_before(void **state)
{
    struct rig *rig = *state;
    uint64_t send = send_under_way(rig, RIG_OURS);
    uint64_t read = post(rig, .opcode = IBV_WR_RDMA_READ, .length = 4);
    sends(rig, READ_REQUEST, RIG_OURS + 1);
    arrives(rig, READ_RESPONSE_ONLY, RIG_OURS + 1, .bytes = 4);
    ends(rig, send, IBV_WC_SUCCESS);
    ends(rig, read, IBV_WC_SUCCESS);
}

/* IBA 9.7.6: a sequence NAK acknowledges what is before it and repeats the rest. */
static void c9_7_6_a_sequence_nak_repeats_from_its_psn(void **state)
{
    struct rig *rig = *state;
    uint64_t first = send_under_way(rig, RIG_OURS);
    send_under_way(rig, RIG_OURS + 1);
    send_under_way(rig, RIG_OURS + 2);
    is_refused(rig, SYNDROME_NAK_SEQUENCE, RIG_OURS + 1);
    ends(rig, first, IBV_WC_SUCCESS);
    ends_nothing(rig);
    sends(rig, SEND_ONLY, RIG_OURS + 1);
    sends(rig, SEND_ONLY, RIG_OURS + 2);
    is_silent(rig);
}

/* IBA 9.4.4: a READ is resumed at the first packet that is missing. */
static void c9_4_4_a_read_is_resumed_where_its_response_broke_off(void **state)
{
    struct rig *rig = *state;
    uint64_t id = read_under_way(rig, 600);
    arrives(rig, READ_RESPONSE_FIRST, RIG_OURS, .bytes = 256);
    waits(rig, RIG_ACK_TIMER);
    const struct packet *packet = sends(rig, READ_REQUEST, RIG_OURS + 1);
    assert_int_equal(packet->address, 0x40 + 256);
    assert_int_equal(packet->length, 600 - 256);
    arrives(rig, READ_RESPONSE_FIRST, RIG_OURS + 1, .bytes = 256);
    arrives(rig, READ_RESPONSE_LAST, RIG_OURS + 2, .bytes = 88);
    ends(rig, id, IBV_WC_SUCCESS);
}

/* IBA 9.7.6: an ACK or response after a missing READ response is an implied NAK; one gap repeats once. */
static void c9_7_6_1_a_missing_read_packet_is_asked_for_once(void **state)
{
    struct rig *rig = *state;
    uint64_t id = read_under_way(rig, 1000);
    arrives(rig, READ_RESPONSE_FIRST, RIG_OURS, .bytes = 256);
    arrives(rig, READ_RESPONSE_MIDDLE, RIG_OURS + 2, .bytes = 256);
    arrives(rig, READ_RESPONSE_LAST, RIG_OURS + 3, .bytes = 232);
    assert_int_equal(sends(rig, READ_REQUEST, RIG_OURS + 1)->length, 744);
    is_silent(rig);
    arrives(rig, READ_RESPONSE_LAST, RIG_OURS + 3, .bytes = 232);
    is_silent(rig);
    arrives(rig, READ_RESPONSE_FIRST, RIG_OURS + 1, .bytes = 256);
    arrives(rig, READ_RESPONSE_MIDDLE, RIG_OURS + 2, .bytes = 256);
    arrives(rig, READ_RESPONSE_LAST, RIG_OURS + 3, .bytes = 232);
    ends(rig, id, IBV_WC_SUCCESS);
}

static void c9_7_6_1_an_ack_cannot_stand_for_a_read_response(void **state)
{
    struct rig *rig = *state;
    uint64_t read = read_under_way(rig, 4);
    uint64_t send = send_under_way(rig, RIG_OURS + 1);
    is_acknowledged(rig, RIG_OURS + 1);
    ends_nothing(rig);
    sends(rig, READ_REQUEST, RIG_OURS);
    sends(rig, SEND_ONLY, RIG_OURS + 1);
    arrives(rig, READ_RESPONSE_ONLY, RIG_OURS, .bytes = 4);
    is_acknowledged(rig, RIG_OURS + 1);
    ends(rig, read, IBV_WC_SUCCESS);
    ends(rig, send, IBV_WC_SUCCESS);
}

static void a_response_that_cannot_be_fetched_counts_as_lost(void **state)
{
    struct rig *rig = *state;
    uint64_t id = read_under_way(rig, 4);
    arrives(rig, READ_RESPONSE_ONLY, RIG_OURS, .bytes = 4, .broken = true);
    ends_nothing(rig);
    sends(rig, READ_REQUEST, RIG_OURS);
    arrives(rig, READ_RESPONSE_ONLY, RIG_OURS, .bytes = 4);
    ends(rig, id, IBV_WC_SUCCESS);
}

/* IBA 9.7.6.1: acknowledgements of packets that were not sent, or were acknowledged before, do nothing. */
static void c9_7_6_1_ghosts_and_duplicates_are_dropped(void **state)
{
    struct rig *rig = *state;
    is_acknowledged(rig, RIG_OURS);
    drops(rig, REASON_PACKET_STALE_RESPONSE);
    uint64_t id = post(rig, .opcode = IBV_WR_SEND, .length = 600);
    sends(rig, SEND_FIRST, RIG_OURS);
    is_acknowledged(rig, RIG_OURS + 1);
    is_acknowledged(rig, RIG_OURS + 2);
    assert_int_equal(rig->drops, 3);
    sends(rig, SEND_MIDDLE, RIG_OURS + 1);
    sends(rig, SEND_LAST, RIG_OURS + 2);
    is_acknowledged(rig, RIG_OURS + 2);
    ends(rig, id, IBV_WC_SUCCESS);
    is_refused(rig, SYNDROME_NAK_REMOTE_ACCESS, RIG_OURS + 2);
    is_refused(rig, SYNDROME_NAK_SEQUENCE, RIG_OURS);
    assert_int_equal(rig->drops, 5);
    is_silent(rig);
    assert_int_equal(rig->failures, 0);
}

static void c9_7_6_1_a_second_gap_is_asked_for_again(void **state)
{
    struct rig *rig = *state;
    rig->engine.rc.settings.retry_count = 3;
    read_under_way(rig, 1000);
    arrives(rig, READ_RESPONSE_MIDDLE, RIG_OURS + 1, .bytes = 256);
    sends(rig, READ_REQUEST, RIG_OURS);
    arrives(rig, READ_RESPONSE_FIRST, RIG_OURS, .bytes = 256);
    arrives(rig, READ_RESPONSE_MIDDLE, RIG_OURS + 2, .bytes = 256);
    sends(rig, READ_REQUEST, RIG_OURS + 1);
    arrives(rig, READ_RESPONSE_LAST, RIG_OURS + 3, .bytes = 232);
    is_silent(rig);
    waits(rig, RIG_ACK_TIMER);
    sends(rig, READ_REQUEST, RIG_OURS + 1);
    arrives(rig, READ_RESPONSE_LAST, RIG_OURS + 3, .bytes = 232);
    sends(rig, READ_REQUEST, RIG_OURS + 1);
}

/* A long READ over a network that may lose packets asks for no more at a time than the window when it began, and a
 * repeat for no more than the request that it repeats (IBA 9.4.4): here two packets, two, and one. */
static void c9_4_4_a_long_read_asks_for_a_window_at_a_time(void **state)
{
    struct rig *rig = *state;
    congestion_start(&rig->engine.rc.requester.congestion, 2, 16);
    uint64_t id = post(rig, .opcode = IBV_WR_RDMA_READ, .length = 5 * RIG_SEGMENT, .remote = 0x500);
    assert_int_equal(sends(rig, READ_REQUEST, RIG_OURS)->length, 2 * RIG_SEGMENT);
    is_silent(rig);
    arrives(rig, READ_RESPONSE_FIRST, RIG_OURS, .bytes = RIG_SEGMENT);
    is_silent(rig);
    arrives(rig, READ_RESPONSE_LAST, RIG_OURS + 1, .bytes = RIG_SEGMENT);
    const struct packet *request = sends(rig, READ_REQUEST, RIG_OURS + 2);
    assert_int_equal(request->length, 2 * RIG_SEGMENT);
    assert_int_equal(request->address, 0x500 + 2 * RIG_SEGMENT);
    arrives(rig, READ_RESPONSE_FIRST, RIG_OURS + 2, .bytes = RIG_SEGMENT);
    waits(rig, NANOS_SECOND);
    request = sends(rig, READ_REQUEST, RIG_OURS + 3);
    assert_int_equal(request->length, RIG_SEGMENT);
    arrives(rig, READ_RESPONSE_ONLY, RIG_OURS + 3, .bytes = RIG_SEGMENT);
    assert_int_equal(sends(rig, READ_REQUEST, RIG_OURS + 4)->length, RIG_SEGMENT);
    arrives(rig, READ_RESPONSE_ONLY, RIG_OURS + 4, .bytes = RIG_SEGMENT);
    ends(rig, id, IBV_WC_SUCCESS);
}

/* A response ends where the request ended, neither earlier nor later. */
static void c9_9_2_a_part_of_a_read_ends_where_it_was_asked_to(void **state)
{
    struct rig *rig = *state;
    congestion_start(&rig->engine.rc.requester.congestion, 2, 16);
    uint64_t id = post(rig, .opcode = IBV_WR_RDMA_READ, .length = 5 * RIG_SEGMENT);
    sends(rig, READ_REQUEST, RIG_OURS);
    arrives(rig, READ_RESPONSE_LAST, RIG_OURS, .bytes = RIG_SEGMENT);
    ends(rig, id, IBV_WC_BAD_RESP_ERR);
}

/* IBA 9.7.6: a NAK of either kind says that all before it has arrived. */
static void c9_7_6_an_rnr_nak_acknowledges_what_came_before(void **state)
{
    struct rig *rig = *state;
    uint64_t before = send_under_way(rig, RIG_OURS);
    send_under_way(rig, RIG_OURS + 1);
    is_refused(rig, SYNDROME_RNR | 1, RIG_OURS + 1);
    ends(rig, before, IBV_WC_SUCCESS);
    ends_nothing(rig);
    waits(rig, NANOS_MILLISECOND);
    sends(rig, SEND_ONLY, RIG_OURS + 1);
    is_silent(rig);
}

static void c9_7_6_a_nak_within_a_message_repeats_from_its_packet(void **state)
{
    struct rig *rig = *state;
    uint64_t id = message_under_way(rig);
    is_refused(rig, SYNDROME_NAK_SEQUENCE, RIG_OURS + 1);
    sends(rig, SEND_MIDDLE, RIG_OURS + 1);
    assert_memory_equal(rig->carried, rig->memory + 256, 256);
    sends(rig, SEND_LAST, RIG_OURS + 2);
    is_acknowledged(rig, RIG_OURS + 2);
    ends(rig, id, IBV_WC_SUCCESS);
}

/* Only the packet with the immediate takes a receive, so only that is sent again. */
static void c9_7_6_a_write_with_immediate_is_repeated_from_its_last_packet(void **state)
{
    struct rig *rig = *state;
    uint64_t id = post(rig, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .length = 300);
    sends(rig, WRITE_FIRST, RIG_OURS);
    sends(rig, WRITE_LAST_IMMEDIATE, RIG_OURS + 1);
    is_refused(rig, SYNDROME_RNR | 1, RIG_OURS + 1);
    waits(rig, NANOS_MILLISECOND);
    sends(rig, WRITE_LAST_IMMEDIATE, RIG_OURS + 1);
    is_silent(rig);
    is_acknowledged(rig, RIG_OURS + 1);
    ends(rig, id, IBV_WC_SUCCESS);
}

/* A responder may notice in the middle of its answer that the memory is not to be read. */
static void c9_7_6_a_nak_within_a_response_ends_its_read(void **state)
{
    struct rig *rig = *state;
    uint64_t read = read_under_way(rig, 600), next = send_under_way(rig, RIG_OURS + 3);
    arrives(rig, READ_RESPONSE_FIRST, RIG_OURS, .bytes = 256);
    is_refused(rig, SYNDROME_NAK_REMOTE_ACCESS, RIG_OURS + 1);
    ends(rig, read, IBV_WC_REM_ACCESS_ERR);
    ends(rig, next, IBV_WC_WR_FLUSH_ERR);
}

/* IBA 9.7.6.1: an answer to a later request shows that an atomic's answer is lost. */
static void c9_7_6_1_a_missing_atomic_answer_is_asked_for(void **state)
{
    struct rig *rig = *state;
    uint64_t atomic = post(rig, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .length = 8, .at = 0x1000);
    sends(rig, FETCH_ADD, RIG_OURS);
    uint64_t send = send_under_way(rig, RIG_OURS + 1);
    is_acknowledged(rig, RIG_OURS + 1);
    ends_nothing(rig);
    sends(rig, FETCH_ADD, RIG_OURS);
    sends(rig, SEND_ONLY, RIG_OURS + 1);
    arrives(rig, ATOMIC_ACKNOWLEDGE, RIG_OURS, .packet = {.syndrome = SYNDROME_ACK, .original = 5});
    is_acknowledged(rig, RIG_OURS + 1);
    ends(rig, atomic, IBV_WC_SUCCESS);
    ends(rig, send, IBV_WC_SUCCESS);
    assert_int_equal(rig->memory[0x1000], 5);
}

/* An answer to a later READ is not used: it is sent again, after the missing one. */
static void c9_7_6_1_a_response_behind_a_missing_one_is_not_used(void **state)
{
    struct rig *rig = *state;
    uint64_t one = read_under_way(rig, 4);
    uint64_t two = post(rig, .opcode = IBV_WR_RDMA_READ, .length = 4, .at = 0x2000);
    sends(rig, READ_REQUEST, RIG_OURS + 1);
    uint8_t before = rig->memory[0x2000];
    arrives(rig, READ_RESPONSE_ONLY, RIG_OURS + 1, .bytes = 4, .fill = (uint8_t)~before);
    assert_int_equal(rig->memory[0x2000], before);
    ends_nothing(rig);
    sends(rig, READ_REQUEST, RIG_OURS);
    sends(rig, READ_REQUEST, RIG_OURS + 1);
    arrives(rig, READ_RESPONSE_ONLY, RIG_OURS, .bytes = 4);
    arrives(rig, READ_RESPONSE_ONLY, RIG_OURS + 1, .bytes = 4);
    ends(rig, one, IBV_WC_SUCCESS);
    ends(rig, two, IBV_WC_SUCCESS);
}

static void c9_7_6_1_an_ack_of_a_read_itself_is_no_answer(void **state)
{
    struct rig *rig = *state;
    uint64_t id = read_under_way(rig, 4);
    is_acknowledged(rig, RIG_OURS);
    ends_nothing(rig);
    sends(rig, READ_REQUEST, RIG_OURS);
    arrives(rig, READ_RESPONSE_ONLY, RIG_OURS, .bytes = 4);
    ends(rig, id, IBV_WC_SUCCESS);
}

/* The program may use the memory of a READ once it has ended, so a late repeat must not reach it. */
static void c9_7_6_1_a_response_that_comes_twice_is_dropped(void **state)
{
    struct rig *rig = *state;
    uint64_t id = read_under_way(rig, 300);
    arrives(rig, READ_RESPONSE_FIRST, RIG_OURS, .bytes = 256, .fill = 1);
    arrives(rig, READ_RESPONSE_FIRST, RIG_OURS, .bytes = 256, .fill = 2);
    drops(rig, REASON_PACKET_STALE_RESPONSE);
    assert_int_equal(rig->memory[0x1000], 1);
    arrives(rig, READ_RESPONSE_LAST, RIG_OURS + 1, .bytes = 44, .fill = 1);
    ends(rig, id, IBV_WC_SUCCESS);
    arrives(rig, READ_RESPONSE_LAST, RIG_OURS + 1, .bytes = 44, .fill = 2);
    assert_int_equal(rig->memory[0x1000 + 256], 1);
    assert_int_equal(rig->drops, 2);
    is_silent(rig);
}

/* IBA 9.7.5.2: the syndrome's first bit is reserved. */
static void c9_7_5_2_the_first_bit_of_a_syndrome_is_ignored(void **state)
{
    struct rig *rig = *state;
    uint64_t one = send_under_way(rig, RIG_OURS), two = send_under_way(rig, RIG_OURS + 1);
    is_refused(rig, 0x80 | SYNDROME_ACK, RIG_OURS);
    ends(rig, one, IBV_WC_SUCCESS);
    is_refused(rig, 0x80 | SYNDROME_RNR | 1, RIG_OURS + 1);
    waits(rig, NANOS_MILLISECOND);
    sends(rig, SEND_ONLY, RIG_OURS + 1);
    is_refused(rig, 0x80 | SYNDROME_NAK_SEQUENCE, RIG_OURS + 1);
    sends(rig, SEND_ONLY, RIG_OURS + 1);
    is_refused(rig, 0x80 | SYNDROME_NAK_REMOTE_OPERATION, RIG_OURS + 1);
    ends(rig, two, IBV_WC_REM_OP_ERR);
}

/* IBA 9.7.7.2: a peer that says it has no receive for us is asked all the same; its RNR NAK is enough. */
static void c9_7_7_2_a_peer_without_credits_is_asked_all_the_same(void **state)
{
    struct rig *rig = *state;
    uint64_t id = send_under_way(rig, RIG_OURS);
    is_refused(rig, 0, RIG_OURS); /* an ACK with credit code 0 */
    ends(rig, id, IBV_WC_SUCCESS);
    send_under_way(rig, RIG_OURS + 1);
    send_under_way(rig, RIG_OURS + 2);
}

/* RoCEv2 annex: a notification that routers met congestion narrows what may be in flight. */
static void a17_9_3_a_notification_narrows_the_window(void **state)
{
    struct rig *rig = *state;
    const struct packet notification = {.opcode = SERVICE_CNP << 5 | 1, .pkey = 0xffff};
    congestion_start(&rig->engine.rc.requester.congestion, 20, 32);
    post(rig, .opcode = IBV_WR_SEND, .length = 1);
    sends(rig, SEND_ONLY, RIG_OURS);
    engine_receive(&rig->engine, &notification, rig->now); /* about what is in flight; others are not believed */
    for (unsigned i = 1; i < 20; i++)
        post(rig, .opcode = IBV_WR_SEND, .length = 1);
    for (unsigned i = 1; i < 16; i++)
        sends(rig, SEND_ONLY, RIG_OURS + i);
    is_silent(rig);
}

static void c9_7_1_a_response_may_wrap_around(void **state)
{
    struct rig *rig = *state;
    rc_start_transmitting(&rig->engine.rc, PSN_MASK);
    uint64_t id = post(rig, .opcode = IBV_WR_RDMA_READ, .length = 600, .at = 0x1000);
    sends(rig, READ_REQUEST, PSN_MASK);
    arrives(rig, READ_RESPONSE_FIRST, PSN_MASK, .bytes = 256, .fill = 1);
    arrives(rig, READ_RESPONSE_LAST, 1, .bytes = 88, .fill = 3);
    assert_int_equal(sends(rig, READ_REQUEST, 0)->length, 344);
    arrives(rig, READ_RESPONSE_FIRST, 0, .bytes = 256, .fill = 2);
    arrives(rig, READ_RESPONSE_LAST, 1, .bytes = 88, .fill = 3);
    ends(rig, id, IBV_WC_SUCCESS);
    assert_int_equal(rig->memory[0x1000 + 255], 1);
    assert_int_equal(rig->memory[0x1000 + 511], 2);
    assert_int_equal(rig->memory[0x1000 + 512], 3);
}

TESTS_OF(script, c9_4_4_a_long_read_asks_for_a_window_at_a_time,
                 c9_9_2_a_part_of_a_read_ends_where_it_was_asked_to,
                 c9_7_6_a_read_response_lands_packet_by_packet,
                 c9_4_5_an_atomic_answer_stores_what_was_there,
                 a19_an_atomic_write_ends_with_an_empty_read_response,
                 a19_a_flush_ends_with_an_empty_read_response,
                 c9_7_6_a_read_response_acknowledges_what_came_before,
                 c9_7_6_a_sequence_nak_repeats_from_its_psn,
                 c9_4_4_a_read_is_resumed_where_its_response_broke_off,
                 c9_7_6_1_a_missing_read_packet_is_asked_for_once,
                 c9_7_6_1_a_second_gap_is_asked_for_again,
                 c9_7_6_1_an_ack_cannot_stand_for_a_read_response,
                 a_response_that_cannot_be_fetched_counts_as_lost,
                 c9_7_6_1_ghosts_and_duplicates_are_dropped,
                 c9_7_6_an_rnr_nak_acknowledges_what_came_before,
                 c9_7_6_a_nak_within_a_message_repeats_from_its_packet,
                 c9_7_6_a_write_with_immediate_is_repeated_from_its_last_packet,
                 c9_7_6_a_nak_within_a_response_ends_its_read,
                 c9_7_6_1_a_missing_atomic_answer_is_asked_for,
                 c9_7_6_1_a_response_behind_a_missing_one_is_not_used,
                 c9_7_6_1_an_ack_of_a_read_itself_is_no_answer,
                 c9_7_6_1_a_response_that_comes_twice_is_dropped,
                 c9_7_5_2_the_first_bit_of_a_syndrome_is_ignored,
                 c9_7_7_2_a_peer_without_credits_is_asked_all_the_same,
                 a17_9_3_a_notification_narrows_the_window,
                 c9_7_1_a_response_may_wrap_around)
