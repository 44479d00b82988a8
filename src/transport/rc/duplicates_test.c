/* Repeated requests, and answers that have to be repeated (IBA 9.7.5.1). */
#include "base/testing/group.h"
#include "transport/testing/script.h"

#include <string.h>

static const uint32_t first = RIG_THEIRS;

/* C9-105: a duplicate SEND or WRITE is acknowledged again and not executed again. */
static void c9_7_5_1_a_repeated_send_is_acknowledged_and_not_delivered_again(void **state)
{
    struct rig *rig = *state;
    uint64_t id = post_receive(rig, 8);
    post_receive(rig, 8);
    arrives(rig, SEND_ONLY, first, .bytes = 8, .packet = {.ack_requested = true});
    delivers(rig, id, IBV_WC_SUCCESS);
    acknowledges(rig, first);
    arrives(rig, SEND_ONLY, first, .bytes = 8, .packet = {.ack_requested = true});
    delivers_nothing(rig);
    assert_int_equal(rig->taken, 1);
    acknowledges(rig, first);
    assert_int_equal(rig->out.msn, 1);
    is_silent(rig);
}

static void c9_7_5_1_a_repeated_write_does_not_write_again(void **state)
{
    struct rig *rig = *state;
    arrives(rig, WRITE_ONLY, first, .bytes = 8, .fill = 1, .packet = {RETH(0x40, 8)});
    rig->memory[0x40] = 7;
    arrives(rig, WRITE_ONLY, first, .bytes = 8, .fill = 1, .packet = {RETH(0x40, 8)});
    assert_int_equal(rig->memory[0x40], 7);
    acknowledges(rig, first);
}

static void c9_7_5_1_a_repeat_inside_an_open_message_leaves_it_open(void **state)
{
    struct rig *rig = *state;
    uint64_t id = post_receive(rig, 600);
    arrives(rig, SEND_FIRST, first, .bytes = 256);
    arrives(rig, SEND_FIRST, first, .bytes = 256);
    arrives(rig, SEND_LAST, first + 1, .bytes = 44);
    assert_int_equal(delivers(rig, id, IBV_WC_SUCCESS)->length, 300);
}

/* IBA 9.4.4: a duplicate READ is executed again; memory may have changed meanwhile. */
static void c9_4_4_a_repeated_read_reads_again(void **state)
{
    struct rig *rig = *state;
    arrives(rig, READ_REQUEST, first, .packet = {RETH(0x40, 300)});
    sends(rig, READ_RESPONSE_FIRST, first);
    sends(rig, READ_RESPONSE_LAST, first + 1);
    rig->memory[0x40] = 0xaa;
    arrives(rig, READ_REQUEST, first, .packet = {RETH(0x40, 300)});
    sends(rig, READ_RESPONSE_FIRST, first);
    assert_int_equal(rig->carried[0], 0xaa);
    assert_int_equal(rig->out.msn, 1);
    sends(rig, READ_RESPONSE_LAST, first + 1);
    is_silent(rig);
}

/* IBA 9.4.4: the repeat may ask for the rest only. */
static void c9_4_4_a_read_is_resumed_at_the_psn_asked_for(void **state)
{
    struct rig *rig = *state;
    arrives(rig, READ_REQUEST, first, .packet = {RETH(0x40, 1000)});
    for (unsigned i = 0; i < 4; i++)
        sends(rig, READ_RESPONSE_FIRST + (i > 0) + (i == 3), first + i);
    arrives(rig, READ_REQUEST, first + 1, .packet = {RETH(0x40 + 256, 744)});
    sends(rig, READ_RESPONSE_FIRST, first + 1);
    assert_memory_equal(rig->carried, rig->memory + 0x40 + 256, 256);
    sends(rig, READ_RESPONSE_MIDDLE, first + 2);
    assert_int_equal(sends(rig, READ_RESPONSE_LAST, first + 3)->payload.length, 232);
    is_silent(rig);
    arrives(rig, READ_REQUEST, first + 1, .packet = {RETH(0x40 + 256, 300)});
    assert_int_equal(sends(rig, READ_RESPONSE_FIRST, first + 1)->payload.length, 256);
    assert_int_equal(sends(rig, READ_RESPONSE_LAST, first + 2)->payload.length, 44);
    is_silent(rig);
}

static void c9_7_5_1_a_read_that_is_under_way_begins_anew(void **state)
{
    struct rig *rig = *state;
    arrives(rig, READ_REQUEST, first, .packet = {RETH(0x40, 600)});
    sends(rig, READ_RESPONSE_FIRST, first);
    sends(rig, READ_RESPONSE_MIDDLE, first + 1);
    arrives(rig, READ_REQUEST, first, .packet = {RETH(0x40, 600)});
    sends(rig, READ_RESPONSE_FIRST, first);
    sends(rig, READ_RESPONSE_MIDDLE, first + 1);
    sends(rig, READ_RESPONSE_LAST, first + 2);
    is_silent(rig);
}

/* A repeat must stay within what the first request asked for (IBA 9.4.4). */
static void c9_4_4_a_repeated_read_of_other_memory_is_dropped(void **state)
{
    struct rig *rig = *state;
    arrives(rig, READ_REQUEST, first, .packet = {RETH(0x40, 600)});
    for (unsigned i = 0; i < 3; i++)
        sends(rig, READ_RESPONSE_FIRST + (i > 0) + (i == 2), first + i);
    arrives(rig, READ_REQUEST, first, .packet = {RETH(0x44, 596)});
    arrives(rig, READ_REQUEST, first, .packet = {RETH(0x40, 601)});
    arrives(rig, READ_REQUEST, first + 1, .packet = {RETH(0x40, 600)});
    arrives(rig, READ_REQUEST, first + 2, .packet = {RETH(0x40 + 512, 89)});
    arrives(rig, READ_REQUEST, first, .packet = {.rkey = KEY_NOTHING, .address = 0x40, .length = 600});
    assert_int_equal(rig->drops, 5);
    is_silent(rig);
    assert_int_equal(rig->failures, 0);
}

/* IBA 9.7.5.1: a repeated atomic is answered from the kept result, never executed again. */
static void c9_4_5_a_repeated_atomic_is_not_executed_again(void **state)
{
    struct rig *rig = *state;
    uint64_t value = 5;
    memcpy(rig->memory + 0x40, &value, 8);
    for (unsigned i = 0; i < 3; i++) {
        arrives(rig, FETCH_ADD, first, .packet = {RETH(0x40, 0), .swap_or_add = 1});
        assert_int_equal(sends(rig, ATOMIC_ACKNOWLEDGE, first)->original, 5);
    }
    assert_int_equal(rig->memory[0x40], 6);
    is_silent(rig);
}

static void a19_a_repeated_atomic_write_is_not_executed_again(void **state)
{
    struct rig *rig = *state;
    arrives(rig, ATOMIC_WRITE, first, .bytes = 8, .fill = 1, .packet = {RETH(0x40, 8)});
    sends(rig, READ_RESPONSE_ONLY, first);
    rig->memory[0x40] = 7;
    arrives(rig, ATOMIC_WRITE, first, .bytes = 8, .fill = 1, .packet = {RETH(0x40, 8)});
    sends(rig, READ_RESPONSE_ONLY, first);
    assert_int_equal(rig->memory[0x40], 7);
}

static void a19_a_repeated_flush_is_answered_again(void **state)
{
    struct rig *rig = *state;
    for (unsigned i = 0; i < 3; i++) {
        arrives(rig, FLUSH, first, .packet = {RETH(0x40, 8), .placement = 1});
        assert_int_equal(sends(rig, READ_RESPONSE_ONLY, first)->msn, 1);
    }
    is_silent(rig);
    arrives(rig, ATOMIC_WRITE, first, .bytes = 8, .packet = {RETH(0x40, 8)});
    drops(rig, REASON_PACKET_SEQUENCE);
    is_silent(rig);
}

static void c9_4_5_the_last_answers_are_kept_and_older_ones_forgotten(void **state)
{
    struct rig *rig = *state;
    for (unsigned i = 0; i < 10; i++) {
        arrives(rig, FETCH_ADD, first + i, .packet = {RETH(0x40 + 8 * i, 0), .swap_or_add = 1});
        sends(rig, ATOMIC_ACKNOWLEDGE, first + i);
    }
    for (unsigned i = 0; i < 6; i++)
        arrives(rig, FETCH_ADD, first + i, .packet = {RETH(0x40 + 8 * i, 0), .swap_or_add = 1});
    drops(rig, REASON_PACKET_PSN);
    is_silent(rig);
    for (unsigned i = 6; i < 10; i++) {
        arrives(rig, FETCH_ADD, first + i, .packet = {RETH(0x40 + 8 * i, 0), .swap_or_add = 1});
        sends(rig, ATOMIC_ACKNOWLEDGE, first + i);
    }
}

/* Go-back-N after lost answers: all repeats, in order, each answered once. */
static void c9_7_5_1_repeats_of_many_kinds_are_answered_in_order(void **state)
{
    struct rig *rig = *state;
    for (unsigned round = 0; round < 3; round++) {
        arrives(rig, WRITE_ONLY, first, .bytes = 1, .packet = {RETH(0, 1), .ack_requested = true});
        arrives(rig, READ_REQUEST, first + 1, .packet = {RETH(0x40, 300)});
        arrives(rig, FETCH_ADD, first + 3, .packet = {RETH(0x80, 0)});
        arrives(rig, READ_REQUEST, first + 4, .packet = {RETH(0x40, 4)});
        arrives(rig, WRITE_ONLY, first + 5, .bytes = 1, .packet = {RETH(0, 1), .ack_requested = true});
        sends(rig, READ_RESPONSE_FIRST, first + 1);
        sends(rig, READ_RESPONSE_LAST, first + 2);
        sends(rig, ATOMIC_ACKNOWLEDGE, first + 3);
        sends(rig, READ_RESPONSE_ONLY, first + 4);
        acknowledges(rig, first + 5);
        is_silent(rig);
    }
}

/* An ACK for a repeated request must not seem to acknowledge the lost response of a later READ. */
static void c9_7_5_1_2_a_repeats_ack_stops_before_the_next_read(void **state)
{
    struct rig *rig = *state;
    arrives(rig, WRITE_ONLY, first, .bytes = 1, .packet = {RETH(0, 1)});
    arrives(rig, WRITE_ONLY, first + 1, .bytes = 1, .packet = {RETH(0, 1)});
    arrives(rig, READ_REQUEST, first + 2, .packet = {RETH(0x40, 4)});
    sends(rig, READ_RESPONSE_ONLY, first + 2);
    arrives(rig, WRITE_ONLY, first + 3, .bytes = 1, .packet = {RETH(0, 1)});
    arrives(rig, WRITE_ONLY, first, .bytes = 1, .packet = {RETH(0, 1)});
    acknowledges(rig, first + 1);
    is_silent(rig);
}

static void c9_4_4_a_repeat_does_not_count_as_one_more_read(void **state)
{
    struct rig *rig = *state;
    for (unsigned i = 0; i < 4; i++) {
        arrives(rig, READ_REQUEST, first + i, .packet = {RETH(0x40, 4)});
        sends(rig, READ_RESPONSE_ONLY, first + i);
    }
    arrives(rig, READ_REQUEST, first, .packet = {RETH(0x40, 4)});
    arrives(rig, READ_REQUEST, first + 4, .packet = {RETH(0x40, 4)});
    assert_int_equal(rig->failures, 0);
    sends(rig, READ_RESPONSE_ONLY, first + 4);
    is_silent(rig);
}

static void c9_7_4_1_4_a_repeated_read_whose_memory_went_away_fails(void **state)
{
    struct rig *rig = *state;
    arrives(rig, READ_REQUEST, first, .packet = {RETH(0x40, 4)});
    sends(rig, READ_RESPONSE_ONLY, first);
    rig->deregistered = true;
    arrives(rig, READ_REQUEST, first, .packet = {RETH(0x40, 4)});
    refuses(rig, SYNDROME_NAK_REMOTE_ACCESS, first);
    assert_int_equal(rig->failures, 1);
    drops(rig, REASON_REMOTE_KEY_UNKNOWN);
}

static void a_new_number_of_read_resources_is_taken_when_idle(void **state)
{
    struct rig *rig = *state;
    arrives(rig, READ_REQUEST, first, .packet = {RETH(0x40, 4)});
    rig->engine.rc.settings.max_dest_rd_atomic = 1;
    arrives(rig, READ_REQUEST, first + 1, .packet = {RETH(0x40, 4)});
    sends(rig, READ_RESPONSE_ONLY, first);
    sends(rig, READ_RESPONSE_ONLY, first + 1);
    arrives(rig, READ_REQUEST, first + 2, .packet = {RETH(0x40, 4)});
    arrives(rig, READ_REQUEST, first + 3, .packet = {RETH(0x40, 4)});
    sends(rig, READ_RESPONSE_ONLY, first + 2);
    refuses(rig, SYNDROME_NAK_INVALID_REQUEST, first + 3);
}

static void c9_7_5_1_2_a_repeats_ack_does_not_replace_a_later_one(void **state)
{
    struct rig *rig = *state;
    arrives(rig, WRITE_ONLY, first, .bytes = 1, .packet = {RETH(0, 1)});
    arrives(rig, READ_REQUEST, first + 1, .packet = {RETH(0x40, 4)});
    sends(rig, READ_RESPONSE_ONLY, first + 1);
    arrives(rig, WRITE_ONLY, first + 2, .bytes = 1, .packet = {RETH(0, 1), .ack_requested = true});
    arrives(rig, WRITE_ONLY, first, .bytes = 1, .packet = {RETH(0, 1)});
    acknowledges(rig, first + 2);
    is_silent(rig);
}

/* The owner's array is as long as at the start (SQD may change max_dest_rd_atomic). */
static void more_read_resources_than_at_the_start_are_not_used(void **state)
{
    struct rig *rig = *state;
    rig->engine.rc.settings.max_dest_rd_atomic = 16;
    for (unsigned i = 0; i < 5; i++)
        arrives(rig, READ_REQUEST, first + i, .packet = {RETH(0x40, 4)});
    drops(rig, REASON_TOO_MANY_READS);
    assert_int_equal(rig->failures, 1);
}

/* IBA 9.7.5.1, C9-110: a repeat of an earlier request is answered before the answer that is under way. */
static void c9_7_5_1_an_earlier_repeat_is_answered_first(void **state)
{
    struct rig *rig = *state;
    arrives(rig, READ_REQUEST, first, .packet = {RETH(0x40, 4)});
    sends(rig, READ_RESPONSE_ONLY, first);
    arrives(rig, READ_REQUEST, first + 1, .packet = {RETH(0x80, 1000)});
    sends(rig, READ_RESPONSE_FIRST, first + 1);
    arrives(rig, READ_REQUEST, first, .packet = {RETH(0x40, 4)});
    sends(rig, READ_RESPONSE_ONLY, first);
    arrives(rig, READ_REQUEST, first + 1, .packet = {RETH(0x80, 1000)});
    for (unsigned i = 0; i < 4; i++)
        sends(rig, READ_RESPONSE_FIRST + (i > 0) + (i == 3), first + 1 + i);
    is_silent(rig);
}

/* IBA 9.4.5: a request that has the PSN of an atomic but another operation is not a repeat of it. */
static void c9_4_5_a_repeat_with_another_operation_is_dropped(void **state)
{
    struct rig *rig = *state;
    arrives(rig, FETCH_ADD, first, .packet = {RETH(0x40, 0), .swap_or_add = 1});
    sends(rig, ATOMIC_ACKNOWLEDGE, first);
    uint8_t after = rig->memory[0x40];
    arrives(rig, COMPARE_SWAP, first, .packet = {RETH(0x40, 0), .compare = after, .swap_or_add = 9});
    drops(rig, REASON_PACKET_SEQUENCE);
    arrives(rig, READ_REQUEST, first, .packet = {RETH(0x40, 8)});
    drops(rig, REASON_PACKET_SEQUENCE);
    assert_int_equal(rig->drops, 2);
    assert_int_equal(rig->memory[0x40], after);
    assert_int_equal(rig->failures, 0);
    is_silent(rig);
}

static void c9_7_1_a_repeated_read_may_wrap_around(void **state)
{
    struct rig *rig = *state;
    rc_start_receiving(&rig->engine.rc, PSN_MASK);
    for (unsigned i = 0; i < 2; i++) {
        arrives(rig, READ_REQUEST, PSN_MASK, .packet = {RETH(0x40, 600)});
        sends(rig, READ_RESPONSE_FIRST, PSN_MASK);
        sends(rig, READ_RESPONSE_MIDDLE, 0);
        sends(rig, READ_RESPONSE_LAST, 1);
    }
    arrives(rig, READ_REQUEST, 1, .packet = {RETH(0x40 + 512, 88)});
    sends(rig, READ_RESPONSE_ONLY, 1);
    assert_memory_equal(rig->carried, rig->memory + 0x40 + 512, 88);
    arrives(rig, WRITE_ONLY, 2, .bytes = 1, .packet = {RETH(0, 1), .ack_requested = true});
    acknowledges(rig, 2);
}

TESTS_OF(script, c9_7_5_1_a_repeated_send_is_acknowledged_and_not_delivered_again,
                 c9_7_5_1_a_repeated_write_does_not_write_again,
                 c9_7_5_1_a_repeat_inside_an_open_message_leaves_it_open,
                 c9_4_4_a_repeated_read_reads_again,
                 c9_4_4_a_read_is_resumed_at_the_psn_asked_for,
                 c9_7_5_1_a_read_that_is_under_way_begins_anew,
                 c9_4_4_a_repeated_read_of_other_memory_is_dropped,
                 c9_4_5_a_repeated_atomic_is_not_executed_again,
                 a19_a_repeated_atomic_write_is_not_executed_again,
                 a19_a_repeated_flush_is_answered_again,
                 c9_4_5_the_last_answers_are_kept_and_older_ones_forgotten,
                 c9_7_5_1_repeats_of_many_kinds_are_answered_in_order,
                 c9_7_5_1_2_a_repeats_ack_stops_before_the_next_read,
                 c9_7_5_1_2_a_repeats_ack_does_not_replace_a_later_one,
                 c9_4_4_a_repeat_does_not_count_as_one_more_read,
                 c9_7_4_1_4_a_repeated_read_whose_memory_went_away_fails,
                 a_new_number_of_read_resources_is_taken_when_idle,
                 more_read_resources_than_at_the_start_are_not_used,
                 c9_7_5_1_an_earlier_repeat_is_answered_first,
                 c9_4_5_a_repeat_with_another_operation_is_dropped,
                 c9_7_1_a_repeated_read_may_wrap_around)
