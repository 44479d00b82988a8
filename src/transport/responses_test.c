/* The requester: what answers, their absence and errors do to it. */
#include "transport/script.h"

#include <string.h>

#include "transport/rnr.h"

static const nanos period = 4096ull << 14; /* the rig's ACK timer: 4.096 us * 2^14 */

/* Brings a READ of this length under way. */
static uint64_t read_under_way(struct rig *rig, uint32_t length)
{
    uint64_t id = post(rig, .opcode = IBV_WR_RDMA_READ, .length = length, .at = 0x1000, .remote = 0x40, .rkey = 9);
    sends(rig, READ_REQUEST, RIG_OURS);
    return id;
}

static uint64_t send_under_way(struct rig *rig, uint32_t psn)
{
    uint64_t id = post(rig, .opcode = IBV_WR_SEND, .length = 1);
    sends(rig, SEND_ONLY, psn);
    return id;
}

/* IBA 9.7.6: a response has a PSN for each of its packets. */
static void a_read_response_lands_packet_by_packet(void **state)
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

static void an_atomic_answer_stores_what_was_there(void **state)
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
static void an_atomic_write_ends_with_an_empty_read_response(void **state)
{
    struct rig *rig = *state;
    uint64_t id = post(rig, .opcode = IBV_WR_ATOMIC_WRITE, .length = 8);
    sends(rig, ATOMIC_WRITE, RIG_OURS);
    arrives(rig, READ_RESPONSE_ONLY, RIG_OURS, );
    ends(rig, id, IBV_WC_SUCCESS);
}

/* IBA 9.7.6: a response acknowledges the requests before it. */
static void a_read_response_acknowledges_what_came_before(void **state)
{
    struct rig *rig = *state;
    uint64_t send = send_under_way(rig, RIG_OURS);
    uint64_t read = post(rig, .opcode = IBV_WR_RDMA_READ, .length = 4);
    sends(rig, READ_REQUEST, RIG_OURS + 1);
    arrives(rig, READ_RESPONSE_ONLY, RIG_OURS + 1, .bytes = 4);
    ends(rig, send, IBV_WC_SUCCESS);
    ends(rig, read, IBV_WC_SUCCESS);
}

/* IBA 9.7.6: the timer repeats everything from the oldest unacknowledged packet. */
static void silence_repeats_from_the_oldest_unacknowledged(void **state)
{
    struct rig *rig = *state;
    post(rig, .opcode = IBV_WR_SEND, .length = 600);
    sends(rig, SEND_FIRST, RIG_OURS);
    sends(rig, SEND_MIDDLE, RIG_OURS + 1);
    sends(rig, SEND_LAST, RIG_OURS + 2);
    is_acknowledged(rig, RIG_OURS);
    waits(rig, period - 1);
    is_silent(rig);
    waits(rig, 1);
    sends(rig, SEND_MIDDLE, RIG_OURS + 1);
    assert_memory_equal(rig->carried, rig->memory + 256, 256);
    sends(rig, SEND_LAST, RIG_OURS + 2);
    is_silent(rig);
}

/* IBA 9.7.6: retry_cnt repeats, so (retry_cnt + 1) periods, then RETRY_EXC. */
static void retries_run_out(void **state)
{
    struct rig *rig = *state;
    uint64_t id = send_under_way(rig, RIG_OURS);
    uint64_t next = send_under_way(rig, RIG_OURS + 1);
    for (unsigned i = 0; i < 2; i++) {
        waits(rig, period);
        sends(rig, SEND_ONLY, RIG_OURS);
        sends(rig, SEND_ONLY, RIG_OURS + 1);
    }
    ends_nothing(rig);
    waits(rig, period);
    ends(rig, id, IBV_WC_RETRY_EXC_ERR);
    ends(rig, next, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(rig->failures, 1);
    is_silent(rig);
    assert_int_equal(rc_deadline(&rig->rc), NANOS_NEVER);
}

static void an_ack_gives_the_retries_back(void **state)
{
    struct rig *rig = *state;
    for (unsigned i = 0; i < 6; i++) {
        uint64_t id = send_under_way(rig, RIG_OURS + i);
        waits(rig, period);
        sends(rig, SEND_ONLY, RIG_OURS + i);
        is_acknowledged(rig, RIG_OURS + i);
        ends(rig, id, IBV_WC_SUCCESS);
    }
}

static void an_ack_restarts_the_timer(void **state)
{
    struct rig *rig = *state;
    send_under_way(rig, RIG_OURS);
    send_under_way(rig, RIG_OURS + 1);
    waits(rig, period - 1);
    is_acknowledged(rig, RIG_OURS);
    waits(rig, period - 1);
    is_silent(rig);
    waits(rig, 1);
    sends(rig, SEND_ONLY, RIG_OURS + 1);
}

/* Verbs: timeout 0 waits for ever. */
static void a_timeout_of_zero_waits_for_ever(void **state)
{
    struct rig *rig = *state;
    rig->rc.settings.timeout = 0;
    send_under_way(rig, RIG_OURS);
    assert_int_equal(rc_deadline(&rig->rc), NANOS_NEVER);
    waits(rig, 1000 * NANOS_SECOND);
    is_silent(rig);
    ends_nothing(rig);
}

static void a_link_that_knows_better_postpones_the_timer(void **state)
{
    struct rig *rig = *state;
    send_under_way(rig, RIG_OURS);
    for (unsigned i = 0; i < 10; i++) {
        rig->now += period - 1;
        rc_postpone(&rig->rc, rig->now);
    }
    waits(rig, period - 1);
    is_silent(rig);
    waits(rig, 1);
    sends(rig, SEND_ONLY, RIG_OURS);
}

/* IBA 9.7.6: a sequence NAK acknowledges what is before it and repeats the rest. */
static void a_sequence_nak_repeats_from_its_psn(void **state)
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

static void sequence_naks_run_the_retries_out(void **state)
{
    struct rig *rig = *state;
    uint64_t id = send_under_way(rig, RIG_OURS);
    for (unsigned i = 0; i < 2; i++) {
        is_refused(rig, SYNDROME_NAK_SEQUENCE, RIG_OURS);
        sends(rig, SEND_ONLY, RIG_OURS);
    }
    is_refused(rig, SYNDROME_NAK_SEQUENCE, RIG_OURS);
    ends(rig, id, IBV_WC_RETRY_EXC_ERR);
}

/* C9-148: a READ is resumed at the first packet that is missing. */
static void a_read_is_resumed_where_its_response_broke_off(void **state)
{
    struct rig *rig = *state;
    uint64_t id = read_under_way(rig, 600);
    arrives(rig, READ_RESPONSE_FIRST, RIG_OURS, .bytes = 256);
    waits(rig, period);
    const struct packet *packet = sends(rig, READ_REQUEST, RIG_OURS + 1);
    assert_int_equal(packet->address, 0x40 + 256);
    assert_int_equal(packet->length, 600 - 256);
    arrives(rig, READ_RESPONSE_FIRST, RIG_OURS + 1, .bytes = 256);
    arrives(rig, READ_RESPONSE_LAST, RIG_OURS + 2, .bytes = 88);
    ends(rig, id, IBV_WC_SUCCESS);
}

/* IBA 9.7.6: an ACK or response behind a missing READ response is an implied NAK; one gap repeats once. */
static void a_missing_read_packet_is_asked_for_once(void **state)
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

static void an_ack_cannot_stand_for_a_read_response(void **state)
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

/* Between the repeat and its answer, what the first answer still brings is taken. */
static void a_late_ack_shortens_the_repeat(void **state)
{
    struct rig *rig = *state;
    for (unsigned i = 0; i < 4; i++)
        send_under_way(rig, RIG_OURS + i);
    waits(rig, period);
    sends(rig, SEND_ONLY, RIG_OURS);
    is_acknowledged(rig, RIG_OURS + 2);
    sends(rig, SEND_ONLY, RIG_OURS + 3);
    is_silent(rig);
}

/* IBA table 45: code 12 is 0.64 ms. The wait is not cut short by the ACK timer. */
static void an_rnr_nak_makes_the_requester_wait(void **state)
{
    struct rig *rig = *state;
    rig->rc.settings.timeout = 1; /* 8 us */
    send_under_way(rig, RIG_OURS);
    is_refused(rig, SYNDROME_RNR | 12, RIG_OURS);
    assert_int_equal(rc_deadline(&rig->rc), rig->now + 640 * NANOS_MICROSECOND);
    post(rig, .opcode = IBV_WR_SEND);
    waits(rig, 640 * NANOS_MICROSECOND - 1);
    is_silent(rig);
    waits(rig, 1);
    sends(rig, SEND_ONLY, RIG_OURS);
    sends(rig, SEND_ONLY, RIG_OURS + 1);
}

static void the_rnr_wait_is_neither_postponed_nor_cut_short(void **state)
{
    struct rig *rig = *state;
    send_under_way(rig, RIG_OURS);
    is_refused(rig, SYNDROME_RNR | 12, RIG_OURS);
    nanos deadline = rc_deadline(&rig->rc);
    rc_postpone(&rig->rc, rig->now + 1);
    is_refused(rig, SYNDROME_RNR | 1, RIG_OURS);
    is_refused(rig, SYNDROME_NAK_SEQUENCE, RIG_OURS);
    assert_int_equal(rc_deadline(&rig->rc), deadline);
    is_silent(rig);
}

static void rnr_retries_run_out(void **state)
{
    struct rig *rig = *state;
    uint64_t id = send_under_way(rig, RIG_OURS);
    for (unsigned i = 0; i < 2; i++) {
        is_refused(rig, SYNDROME_RNR, RIG_OURS);
        waits(rig, rnr_wait(0));
        sends(rig, SEND_ONLY, RIG_OURS);
    }
    is_refused(rig, SYNDROME_RNR, RIG_OURS);
    ends(rig, id, IBV_WC_RNR_RETRY_EXC_ERR);
}

/* Verbs: rnr_retry 7 is for ever. */
static void rnr_retry_seven_is_for_ever(void **state)
{
    struct rig *rig = *state;
    rig->rc.settings.rnr_retry = 7;
    uint64_t id = send_under_way(rig, RIG_OURS);
    for (unsigned i = 0; i < 100; i++) {
        is_refused(rig, SYNDROME_RNR, RIG_OURS);
        waits(rig, rnr_wait(0));
        sends(rig, SEND_ONLY, RIG_OURS);
    }
    is_acknowledged(rig, RIG_OURS);
    ends(rig, id, IBV_WC_SUCCESS);
}

static void the_rnr_table_is_the_specifications(void **state)
{
    assert_int_equal(rnr_wait(0), 655360 * NANOS_MICROSECOND);
    assert_int_equal(rnr_wait(1), 10 * NANOS_MICROSECOND);
    assert_int_equal(rnr_wait(14), 1280 * NANOS_MICROSECOND);
    assert_int_equal(rnr_wait(31), 491520 * NANOS_MICROSECOND);
    for (unsigned i = 2; i < 32; i++)
        assert_true(rnr_wait(i) > rnr_wait(i - 1));
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

/* IBA 9.7.6.1: acknowledgements of what was not sent, or was acknowledged before, do nothing. */
static void ghosts_and_duplicates_are_dropped(void **state)
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

static void a_late_ack_within_a_message_shortens_the_repeat_too(void **state)
{
    struct rig *rig = *state;
    post(rig, .opcode = IBV_WR_SEND, .length = 600);
    sends(rig, SEND_FIRST, RIG_OURS);
    sends(rig, SEND_MIDDLE, RIG_OURS + 1);
    sends(rig, SEND_LAST, RIG_OURS + 2);
    waits(rig, period);
    is_acknowledged(rig, RIG_OURS + 1);
    sends(rig, SEND_LAST, RIG_OURS + 2);
    is_silent(rig);
}

static void an_ack_does_not_end_the_rnr_wait(void **state)
{
    struct rig *rig = *state;
    send_under_way(rig, RIG_OURS);
    send_under_way(rig, RIG_OURS + 1);
    is_refused(rig, SYNDROME_RNR | 12, RIG_OURS);
    nanos deadline = rc_deadline(&rig->rc);
    is_acknowledged(rig, RIG_OURS);
    assert_int_equal(rc_deadline(&rig->rc), deadline);
    is_silent(rig);
}

static void an_rnr_nak_gives_the_retries_back(void **state)
{
    struct rig *rig = *state;
    rig->rc.settings.rnr_retry = 7;
    send_under_way(rig, RIG_OURS);
    for (unsigned i = 0; i < 6; i++) {
        waits(rig, period);
        sends(rig, SEND_ONLY, RIG_OURS);
        is_refused(rig, SYNDROME_RNR | 1, RIG_OURS);
        waits(rig, rnr_wait(1));
        sends(rig, SEND_ONLY, RIG_OURS);
    }
    ends_nothing(rig);
}

static void a_second_gap_is_asked_for_again(void **state)
{
    struct rig *rig = *state;
    rig->rc.settings.retry_count = 3;
    read_under_way(rig, 1000);
    arrives(rig, READ_RESPONSE_MIDDLE, RIG_OURS + 1, .bytes = 256);
    sends(rig, READ_REQUEST, RIG_OURS);
    arrives(rig, READ_RESPONSE_FIRST, RIG_OURS, .bytes = 256);
    arrives(rig, READ_RESPONSE_MIDDLE, RIG_OURS + 2, .bytes = 256);
    sends(rig, READ_REQUEST, RIG_OURS + 1);
    arrives(rig, READ_RESPONSE_LAST, RIG_OURS + 3, .bytes = 232);
    is_silent(rig);
    waits(rig, period);
    sends(rig, READ_REQUEST, RIG_OURS + 1);
    arrives(rig, READ_RESPONSE_LAST, RIG_OURS + 3, .bytes = 232);
    sends(rig, READ_REQUEST, RIG_OURS + 1);
}

/* On a network that may lose some, a long READ asks for no more at a time than the window was when it began, and a
 * repeat for no more than the request that it repeats (C9-148): here two packets, two, and one. */
static void a_long_read_asks_for_a_window_at_a_time(void **state)
{
    struct rig *rig = *state;
    congestion_start(&rig->rc.requester.congestion, 2, 16);
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

/* IBA 9.7.6.1.3: the timer may run for up to four times the value; on a network it does after silence, doubling. */
static void on_a_network_silence_is_waited_for_longer(void **state)
{
    struct rig *rig = *state;
    const nanos value = 4096ull << rig->rc.settings.timeout;
    rig->rc.settings.first_window = 4;
    rig->rc.settings.retry_count = rig->rc.requester.retries_left = 4;
    post(rig, .opcode = IBV_WR_SEND, .length = 8);
    sends(rig, SEND_ONLY, RIG_OURS);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(rc_deadline(&rig->rc) - rig->now, value << (i < 2 ? i : 2));
        waits(rig, value << (i < 2 ? i : 2));
        sends(rig, SEND_ONLY, RIG_OURS);
    }
    is_acknowledged(rig, RIG_OURS);
    post(rig, .opcode = IBV_WR_SEND, .length = 8);
    sends(rig, SEND_ONLY, RIG_OURS + 1);
    assert_int_equal(rc_deadline(&rig->rc) - rig->now, value);
}

/* The end of a response stands where the request ended, not before and not behind. */
static void a_part_of_a_read_ends_where_it_was_asked_to(void **state)
{
    struct rig *rig = *state;
    congestion_start(&rig->rc.requester.congestion, 2, 16);
    uint64_t id = post(rig, .opcode = IBV_WR_RDMA_READ, .length = 5 * RIG_SEGMENT);
    sends(rig, READ_REQUEST, RIG_OURS);
    arrives(rig, READ_RESPONSE_LAST, RIG_OURS, .bytes = RIG_SEGMENT);
    ends(rig, id, IBV_WC_BAD_RESP_ERR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        script(a_long_read_asks_for_a_window_at_a_time),
        script(a_part_of_a_read_ends_where_it_was_asked_to),
        script(on_a_network_silence_is_waited_for_longer),
        script(a_read_response_lands_packet_by_packet),
        script(an_atomic_answer_stores_what_was_there),
        script(an_atomic_write_ends_with_an_empty_read_response),
        script(a_read_response_acknowledges_what_came_before),
        script(silence_repeats_from_the_oldest_unacknowledged),
        script(retries_run_out),
        script(an_ack_gives_the_retries_back),
        script(an_ack_restarts_the_timer),
        script(a_timeout_of_zero_waits_for_ever),
        script(a_link_that_knows_better_postpones_the_timer),
        script(a_sequence_nak_repeats_from_its_psn),
        script(sequence_naks_run_the_retries_out),
        script(a_read_is_resumed_where_its_response_broke_off),
        script(a_missing_read_packet_is_asked_for_once),
        script(a_second_gap_is_asked_for_again),
        script(an_ack_cannot_stand_for_a_read_response),
        script(a_late_ack_shortens_the_repeat),
        script(a_late_ack_within_a_message_shortens_the_repeat_too),
        script(an_rnr_nak_makes_the_requester_wait),
        script(the_rnr_wait_is_neither_postponed_nor_cut_short),
        script(an_ack_does_not_end_the_rnr_wait),
        script(an_rnr_nak_gives_the_retries_back),
        script(rnr_retries_run_out),
        script(rnr_retry_seven_is_for_ever),
        script(the_rnr_table_is_the_specifications),
        script(a_response_that_cannot_be_fetched_counts_as_lost),
        script(ghosts_and_duplicates_are_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
