/* The responder: the effects of requests, the order of their checks, and the answers. */
#include "base/testing/group.h"
#include "transport/testing/script.h"

#include <string.h>

#define ACK_REQUESTED .ack_requested = true

static const uint32_t first = RIG_THEIRS;

static void assert_filled(const struct rig *rig, uint32_t at, uint32_t length, uint8_t fill)
{
    for (uint32_t i = 0; i < length; i++)
        assert_int_equal(rig->memory[at + i], fill);
    assert_int_not_equal(rig->memory[at + length], fill);
}

static void c9_7_5_1_a_send_fills_a_receive_and_is_acknowledged(void **state)
{
    struct rig *rig = *state;
    uint64_t id = post_receive(rig, 100);
    arrives(rig, SEND_ONLY, first, .bytes = 60, .fill = 0xee, .packet = {ACK_REQUESTED, .solicited = true});
    const struct recv_cqe *arrival = delivers(rig, id, IBV_WC_SUCCESS);
    assert_int_equal(arrival->length, 60);
    assert_int_equal(arrival->opcode, IBV_WC_RECV);
    assert_int_equal(arrival->flags, 0);
    assert_true(arrival->solicited);
    assert_filled(rig, 0x8000, 60, 0xee);
    acknowledges(rig, first);
    assert_int_equal(rig->out.msn, 1);
    is_silent(rig);
}

static void c9_4_1_a_message_of_many_packets_fills_one_receive(void **state)
{
    struct rig *rig = *state;
    uint64_t id = post_receive(rig, 600);
    arrives(rig, SEND_FIRST, first, .bytes = 256, .fill = 0xee);
    arrives(rig, SEND_MIDDLE, first + 1, .bytes = 256, .fill = 0xee);
    delivers_nothing(rig);
    arrives(rig, SEND_LAST_IMMEDIATE, first + 2, .bytes = 88, .fill = 0xee, .packet = {ACK_REQUESTED, .immediate = 5});
    const struct recv_cqe *arrival = delivers(rig, id, IBV_WC_SUCCESS);
    assert_int_equal(arrival->length, 600);
    assert_int_equal(arrival->flags, IBV_WC_WITH_IMM);
    assert_int_equal(arrival->immediate_or_key, 5);
    assert_filled(rig, 0x8000, 600, 0xee);
    acknowledges(rig, first + 2);
}

/* IBA 9.7.5.1.2: an ACK that was not pulled is absorbed by a later one. */
static void c9_7_5_1_2_acknowledgements_are_coalesced(void **state)
{
    struct rig *rig = *state;
    for (unsigned i = 0; i < 5; i++) {
        post_receive(rig, 8);
        arrives(rig, SEND_ONLY, first + i, .bytes = 8, .packet = {ACK_REQUESTED});
    }
    acknowledges(rig, first + 4);
    assert_int_equal(rig->out.msn, 5);
    is_silent(rig);
}

static void c9_7_5_1_nothing_is_acknowledged_unless_asked_for(void **state)
{
    struct rig *rig = *state;
    post_receive(rig, 8);
    arrives(rig, SEND_ONLY, first, .bytes = 8);
    is_silent(rig);
}

static void a_receive_may_skip_the_start_of_its_message(void **state)
{
    struct rig *rig = *state;
    uint64_t id = post_receive(rig, 500);
    rig->receives[0].receive.skip = 300;
    arrives(rig, SEND_FIRST, first, .bytes = 256, .fill = 0xee);
    arrives(rig, SEND_LAST, first + 1, .bytes = 256, .fill = 0xdd);
    assert_int_equal(delivers(rig, id, IBV_WC_SUCCESS)->length, 512);
    assert_filled(rig, 0x8000, 212, 0xdd);
}

static void c9_4_3_a_write_lands_and_takes_no_receive(void **state)
{
    struct rig *rig = *state;
    post_receive(rig, 8);
    arrives(rig, WRITE_FIRST, first, .bytes = 256, .fill = 0xee, .packet = {RETH(0x40, 300)});
    arrives(rig, WRITE_LAST, first + 1, .bytes = 44, .fill = 0xee, .packet = {ACK_REQUESTED});
    assert_filled(rig, 0x40, 300, 0xee);
    delivers_nothing(rig);
    assert_int_equal(rig->taken, 0);
    acknowledges(rig, first + 1);
}

static void packets_may_be_larger_than_the_path_mtu(void **state)
{
    struct rig *rig = *state;
    arrives(rig, WRITE_FIRST, first, .bytes = 4096, .fill = 0xee, .packet = {RETH(0x40, 4100)});
    arrives(rig, WRITE_LAST, first + 1, .bytes = 4, .fill = 0xee, .packet = {ACK_REQUESTED});
    assert_filled(rig, 0x40, 4100, 0xee);
    acknowledges(rig, first + 1);
}

static void c9_4_3_a_write_with_immediate_takes_its_receive_at_the_end(void **state)
{
    struct rig *rig = *state;
    arrives(rig, WRITE_FIRST, first, .bytes = 256, .fill = 0xee, .packet = {RETH(0x40, 300)});
    struct rig_packet last = {.bytes = 44, .fill = 0xee, .packet = {ACK_REQUESTED, .immediate = 7}};
    rig_arrive(rig, OPERATION_WRITE_LAST_IMMEDIATE, first + 1, last);
    refuses(rig, SYNDROME_RNR | 12, first + 1);
    uint64_t id = post_receive(rig, 0);
    rig_arrive(rig, OPERATION_WRITE_LAST_IMMEDIATE, first + 1, last);
    const struct recv_cqe *arrival = delivers(rig, id, IBV_WC_SUCCESS);
    assert_int_equal(arrival->length, 300);
    assert_int_equal(arrival->opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    assert_int_equal(arrival->immediate_or_key, 7);
    acknowledges(rig, first + 1);
}

static void c9_7_4_1_4_a_write_of_nothing_touches_no_key(void **state)
{
    struct rig *rig = *state;
    arrives(rig, WRITE_ONLY, first, .packet = {.rkey = 0xbad, ACK_REQUESTED});
    acknowledges(rig, first);
    arrives(rig, READ_REQUEST, first + 1, .packet = {.rkey = 0xbad});
    assert_int_equal(sends(rig, READ_RESPONSE_ONLY, first + 1)->payload.length, 0);
    assert_int_equal(rig->looked_up, 0);
}

/* IBA 9.7.5: a READ is executed packet by packet. */
static void c9_4_4_a_read_is_answered_by_its_memory(void **state)
{
    struct rig *rig = *state;
    arrives(rig, READ_REQUEST, first, .packet = {RETH(0x40, 600)});
    assert_int_equal(sends(rig, READ_RESPONSE_FIRST, first)->payload.length, 256);
    assert_memory_equal(rig->carried, rig->memory + 0x40, 256);
    assert_int_equal(rig->out.syndrome, SYNDROME_ACK);
    assert_int_equal(rig->out.msn, 1);
    assert_false(rig->out.payload.by_reference);
    sends(rig, READ_RESPONSE_MIDDLE, first + 1);
    assert_int_equal(sends(rig, READ_RESPONSE_LAST, first + 2)->payload.length, 88);
    assert_memory_equal(rig->carried, rig->memory + 0x40 + 512, 88);
    is_silent(rig);
    arrives(rig, WRITE_ONLY, first + 3, .bytes = 1, .packet = {RETH(0, 1), ACK_REQUESTED});
    acknowledges(rig, first + 3);
}

/* IBA 9.7.5.1.2: answers are sent in the order of PSNs; a READ response replaces the ACKs before it. */
static void c9_7_5_1_answers_keep_the_order_of_requests(void **state)
{
    struct rig *rig = *state;
    arrives(rig, WRITE_ONLY, first, .bytes = 1, .packet = {RETH(0, 1), ACK_REQUESTED});
    arrives(rig, READ_REQUEST, first + 1, .packet = {RETH(0x40, 300)});
    arrives(rig, FETCH_ADD, first + 3, .packet = {RETH(0x80, 0), .swap_or_add = 1});
    arrives(rig, WRITE_ONLY, first + 4, .bytes = 1, .packet = {RETH(0, 1), ACK_REQUESTED});
    sends(rig, READ_RESPONSE_FIRST, first + 1);
    sends(rig, READ_RESPONSE_LAST, first + 2);
    sends(rig, ATOMIC_ACKNOWLEDGE, first + 3);
    acknowledges(rig, first + 4);
    is_silent(rig);
}

static void c9_4_5_atomics_change_memory_and_answer_what_was_there(void **state)
{
    struct rig *rig = *state;
    uint64_t value = 40;
    memcpy(rig->memory + 0x40, &value, 8);
    arrives(rig, FETCH_ADD, first, .packet = {RETH(0x40, 0), .swap_or_add = 2});
    assert_int_equal(sends(rig, ATOMIC_ACKNOWLEDGE, first)->original, 40);
    arrives(rig, COMPARE_SWAP, first + 1, .packet = {RETH(0x40, 0), .compare = 41, .swap_or_add = 9});
    assert_int_equal(sends(rig, ATOMIC_ACKNOWLEDGE, first + 1)->original, 42);
    arrives(rig, COMPARE_SWAP, first + 2, .packet = {RETH(0x40, 0), .compare = 42, .swap_or_add = 9});
    assert_int_equal(sends(rig, ATOMIC_ACKNOWLEDGE, first + 2)->original, 42);
    assert_int_equal(rig->memory[0x40], 9);
}

/* The peer's address is a multiple of eight and the memory's is not: the verbs are atomic even so. */
static void atomics_change_memory_that_is_not_aligned(void **state)
{
    struct rig *rig = *state;
    uint64_t value = 40;
    uint8_t *word = rig->memory + RIG_SHIFT + 0x40;
    memcpy(word, &value, 8);
    struct packet to = {.address = 0x40, .rkey = KEY_SHIFTED, .swap_or_add = 2};
    arrives(rig, FETCH_ADD, first, .packet = to);
    assert_int_equal(sends(rig, ATOMIC_ACKNOWLEDGE, first)->original, 40);
    to.swap_or_add = 9;
    for (to.compare = 41; to.compare <= 42; to.compare++) {
        uint32_t psn = first + 1 + (to.compare == 42);
        arrives(rig, COMPARE_SWAP, psn, .packet = to);
        assert_int_equal(sends(rig, ATOMIC_ACKNOWLEDGE, psn)->original, 42);
        memcpy(&value, word, 8);
        assert_int_equal(value, to.compare == 42 ? 9 : 42);
    }
}

static void a19_an_atomic_write_stores_eight_bytes(void **state)
{
    struct rig *rig = *state;
    arrives(rig, ATOMIC_WRITE, first, .bytes = 8, .fill = 0xee, .packet = {RETH(0x40, 8)});
    assert_int_equal(sends(rig, READ_RESPONSE_ONLY, first)->payload.length, 0);
    assert_filled(rig, 0x40, 8, 0xee);
}

static void a19_a_flush_is_answered_like_a_read_of_nothing(void **state)
{
    struct rig *rig = *state;
    arrives(rig, WRITE_ONLY, first, .bytes = 8, .fill = 0xee, .packet = {RETH(0x40, 8), .ack_requested = true});
    arrives(rig, FLUSH, first + 1, .packet = {RETH(0x40, 8), .placement = NEWER_FLUSH_GLOBAL});
    const struct packet *answer = sends(rig, READ_RESPONSE_ONLY, first + 1);
    assert_int_equal(answer->payload.length, 0);
    assert_int_equal(answer->syndrome, SYNDROME_ACK);
    assert_int_equal(answer->msn, 2);
    assert_filled(rig, 0x40, 8, 0xee);
    is_silent(rig); /* it has acknowledged the write, too */
    arrives(rig, WRITE_ONLY, first + 2, .bytes = 1, .packet = {RETH(0x40, 1), .ack_requested = true});
    acknowledges(rig, first + 2);
}

/* Annex A19: of a whole region neither the address nor the length counts. */
static void a19_a_flush_of_a_region_asks_only_for_its_key(void **state)
{
    struct rig *rig = *state;
    arrives(rig, FLUSH, first, .packet = {RETH(UINT64_MAX, UINT32_MAX), .placement = 3, .selectivity = 1});
    sends(rig, READ_RESPONSE_ONLY, first);
    arrives(rig, FLUSH, first + 1, .packet = {.rkey = 1, .placement = 3, .selectivity = 1});
    refuses(rig, SYNDROME_NAK_REMOTE_ACCESS, first + 1);
}

static void c9_4_1_a_send_with_invalidate_reports_the_key(void **state)
{
    struct rig *rig = *state;
    uint64_t id = post_receive(rig, 8);
    arrives(rig, SEND_ONLY_INVALIDATE, first, .bytes = 8, .packet = {.invalidate_key = KEY_ALL});
    const struct recv_cqe *arrival = delivers(rig, id, IBV_WC_SUCCESS);
    assert_int_equal(arrival->flags, IBV_WC_WITH_INV);
    assert_int_equal(arrival->immediate_or_key, KEY_ALL);
    assert_int_equal(rig->invalidated, KEY_ALL);
}

/* IBA 9.7.5: a gap is reported exactly once, then there is silence until it is filled. */
static void c9_7_5_1_a_gap_is_reported_once(void **state)
{
    struct rig *rig = *state;
    arrives(rig, WRITE_ONLY, first + 1, .bytes = 1, .packet = {RETH(0, 1), ACK_REQUESTED});
    refuses(rig, SYNDROME_NAK_SEQUENCE, first);
    arrives(rig, WRITE_ONLY, first + 2, .bytes = 1, .packet = {RETH(0, 1), ACK_REQUESTED});
    arrives(rig, WRITE_ONLY, first + 1, .bytes = 1, .packet = {RETH(0, 1), ACK_REQUESTED});
    is_silent(rig);
    drops(rig, REASON_PACKET_PSN);
    arrives(rig, WRITE_ONLY, first, .bytes = 1, .packet = {RETH(0, 1), ACK_REQUESTED});
    acknowledges(rig, first);
    arrives(rig, WRITE_ONLY, first + 2, .bytes = 1, .packet = {RETH(0, 1), ACK_REQUESTED});
    refuses(rig, SYNDROME_NAK_SEQUENCE, first + 1);
}

static void a_gap_that_fills_before_its_report_is_not_reported(void **state)
{
    struct rig *rig = *state;
    arrives(rig, WRITE_ONLY, first + 1, .bytes = 1, .packet = {RETH(0, 1), ACK_REQUESTED});
    arrives(rig, WRITE_ONLY, first, .bytes = 1, .packet = {RETH(0, 1), ACK_REQUESTED});
    acknowledges(rig, first);
    is_silent(rig);
}

/* IBA 9.7.5.2.8: the RNR NAK carries min_rnr_timer; packets after the refused one get no answer. */
static void c9_7_5_2_8_a_send_without_a_receive_is_refused_for_now(void **state)
{
    struct rig *rig = *state;
    arrives(rig, SEND_ONLY, first, .bytes = 8, .packet = {ACK_REQUESTED});
    refuses(rig, SYNDROME_RNR | 12, first);
    arrives(rig, WRITE_ONLY, first + 1, .bytes = 1, .packet = {RETH(0, 1), ACK_REQUESTED});
    is_silent(rig);
    arrives(rig, SEND_ONLY, first, .bytes = 8, .packet = {ACK_REQUESTED});
    refuses(rig, SYNDROME_RNR | 12, first);
    uint64_t id = post_receive(rig, 8);
    arrives(rig, SEND_ONLY, first, .bytes = 8, .packet = {ACK_REQUESTED});
    delivers(rig, id, IBV_WC_SUCCESS);
    acknowledges(rig, first);
    raises_nothing(rig);
}

/* A payload that can't be fetched counts as a lost packet; the receive that was taken for it waits. */
static void a_payload_that_cannot_be_fetched_is_asked_for_again(void **state)
{
    struct rig *rig = *state;
    uint64_t id = post_receive(rig, 8);
    for (unsigned i = 0; i < 3; i++) {
        arrives(rig, SEND_ONLY, first, .bytes = 8, .broken = true, .packet = {ACK_REQUESTED});
        refuses(rig, SYNDROME_NAK_SEQUENCE, first);
        drops(rig, REASON_PACKET_PULL);
    }
    delivers_nothing(rig);
    arrives(rig, SEND_ONLY, first, .bytes = 8, .packet = {ACK_REQUESTED});
    delivers(rig, id, IBV_WC_SUCCESS);
    assert_int_equal(rig->taken, 1);
    acknowledges(rig, first);
}

/* The message's first bytes choose the receive, and can't be fetched: a receive may be there, so it is not an RNR. */
static void a_payload_that_cannot_be_looked_at_is_asked_for_again(void **state)
{
    struct rig *rig = *state;
    rig->looks_inside = true;
    uint64_t id = post_receive(rig, 8);
    for (unsigned i = 0; i < 3; i++) {
        arrives(rig, SEND_ONLY, first, .bytes = 8, .broken = true, .packet = {ACK_REQUESTED});
        refuses(rig, SYNDROME_NAK_SEQUENCE, first);
        drops(rig, REASON_PACKET_PULL);
        assert_int_equal(rig->taken, 0);
    }
    arrives(rig, SEND_ONLY, first, .bytes = 8, .packet = {ACK_REQUESTED});
    delivers(rig, id, IBV_WC_SUCCESS);
    acknowledges(rig, first);
    arrives(rig, SEND_ONLY, first + 1, .bytes = 8, .packet = {ACK_REQUESTED});
    refuses(rig, SYNDROME_RNR | 12, first + 1);
}

static void c9_4_4_answered_reads_make_room_for_ever(void **state)
{
    struct rig *rig = *state;
    for (unsigned i = 0; i < 100; i++) {
        arrives(rig, READ_REQUEST, first + i, .packet = {RETH(0x40, 4)});
        if (i >= 2)
            sends(rig, READ_RESPONSE_ONLY, first + i - 2);
    }
    assert_int_equal(rig->failures, 0);
}

/* IBA 11.6.3: COMM_EST on the first packet in RTR, once; not when the QP has got to RTS by itself. */
static void the_first_packet_in_rtr_establishes_communication(void **state)
{
    struct rig *rig = *state;
    arrives(rig, WRITE_ONLY, first, .bytes = 1, .packet = {RETH(0, 1)});
    raises_nothing(rig);
    rig_make(rig);
    rc_start_receiving(&rig->engine.rc, first);
    arrives(rig, WRITE_ONLY, first, .bytes = 1, .packet = {RETH(0, 1), ACK_REQUESTED});
    raises(rig, IBV_EVENT_COMM_EST);
    arrives(rig, WRITE_ONLY, first + 1, .bytes = 1, .packet = {RETH(0, 1), ACK_REQUESTED});
    raises_nothing(rig);
    acknowledges(rig, first + 1);
}

/* An open receive is flushed with its queue pair. */
static void flushing_ends_an_open_receive(void **state)
{
    struct rig *rig = *state;
    uint64_t id = post_receive(rig, 600);
    arrives(rig, SEND_FIRST, first, .bytes = 256, .packet = {ACK_REQUESTED});
    rc_flush(&rig->engine.rc);
    delivers(rig, id, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(rig->failures, 0);
    arrives(rig, SEND_LAST, first + 1, .bytes = 1);
    delivers_nothing(rig);
}

static void what_was_received_before_a_failure_is_still_acknowledged(void **state)
{
    struct rig *rig = *state;
    post_receive(rig, 8);
    arrives(rig, SEND_ONLY, first, .bytes = 8, .packet = {ACK_REQUESTED});
    rc_flush(&rig->engine.rc);
    acknowledges(rig, first);
    is_silent(rig);
}

static void c9_7_1_psns_wrap_around_here_too(void **state)
{
    struct rig *rig = *state;
    rc_start_receiving(&rig->engine.rc, PSN_MASK);
    arrives(rig, WRITE_ONLY, PSN_MASK, .bytes = 1, .packet = {RETH(0, 1), ACK_REQUESTED});
    acknowledges(rig, PSN_MASK);
    arrives(rig, READ_REQUEST, 0, .packet = {RETH(0x40, 4)});
    sends(rig, READ_RESPONSE_ONLY, 0);
    arrives(rig, WRITE_ONLY, PSN_MASK, .bytes = 1, .packet = {RETH(0, 1), ACK_REQUESTED});
    acknowledges(rig, PSN_MASK);
}

static void c9_7_5_1_2_a_read_response_stands_for_the_acks_before_it(void **state)
{
    struct rig *rig = *state;
    arrives(rig, WRITE_ONLY, first, .bytes = 1, .packet = {RETH(0, 1), ACK_REQUESTED});
    arrives(rig, READ_REQUEST, first + 1, .packet = {RETH(0x40, 4)});
    sends(rig, READ_RESPONSE_ONLY, first + 1);
    is_silent(rig);
}

static void c9_7_5_1_2_a_nak_stands_for_the_acks_before_it(void **state)
{
    struct rig *rig = *state;
    arrives(rig, WRITE_ONLY, first, .bytes = 1, .packet = {RETH(0, 1), ACK_REQUESTED});
    arrives(rig, WRITE_ONLY, first + 2, .bytes = 1, .packet = {RETH(0, 1), ACK_REQUESTED});
    refuses(rig, SYNDROME_NAK_SEQUENCE, first + 1);
    is_silent(rig);
}

static void flushing_withholds_read_responses(void **state)
{
    struct rig *rig = *state;
    arrives(rig, READ_REQUEST, first, .packet = {RETH(0x40, 600)});
    sends(rig, READ_RESPONSE_FIRST, first);
    rc_flush(&rig->engine.rc);
    is_silent(rig);
}

TESTS_OF(script, c9_7_5_1_a_send_fills_a_receive_and_is_acknowledged,
                 c9_4_1_a_message_of_many_packets_fills_one_receive,
                 c9_7_5_1_2_acknowledgements_are_coalesced,
                 c9_7_5_1_nothing_is_acknowledged_unless_asked_for,
                 a_receive_may_skip_the_start_of_its_message,
                 c9_4_3_a_write_lands_and_takes_no_receive,
                 packets_may_be_larger_than_the_path_mtu,
                 c9_4_3_a_write_with_immediate_takes_its_receive_at_the_end,
                 c9_7_4_1_4_a_write_of_nothing_touches_no_key,
                 c9_4_4_a_read_is_answered_by_its_memory,
                 c9_7_5_1_answers_keep_the_order_of_requests,
                 c9_7_5_1_2_a_read_response_stands_for_the_acks_before_it,
                 c9_4_5_atomics_change_memory_and_answer_what_was_there,
                 atomics_change_memory_that_is_not_aligned,
                 a19_an_atomic_write_stores_eight_bytes,
                 a19_a_flush_is_answered_like_a_read_of_nothing,
                 a19_a_flush_of_a_region_asks_only_for_its_key,
                 c9_4_1_a_send_with_invalidate_reports_the_key,
                 c9_7_5_1_a_gap_is_reported_once,
                 c9_7_5_1_2_a_nak_stands_for_the_acks_before_it,
                 a_gap_that_fills_before_its_report_is_not_reported,
                 c9_7_5_2_8_a_send_without_a_receive_is_refused_for_now,
                 a_payload_that_cannot_be_fetched_is_asked_for_again,
                 a_payload_that_cannot_be_looked_at_is_asked_for_again,
                 c9_4_4_answered_reads_make_room_for_ever,
                 the_first_packet_in_rtr_establishes_communication,
                 flushing_ends_an_open_receive,
                 flushing_withholds_read_responses,
                 what_was_received_before_a_failure_is_still_acknowledged,
                 c9_7_1_psns_wrap_around_here_too)
