/* The requester: the ACK timer, the waits after RNR NAKs, and how often either repeats. */
#include "base/testing/group.h"
#include "transport/testing/script.h"
#include "wire/psn.h"

/* IBA 9.7.6: the timer repeats everything from the oldest unacknowledged packet. */
static void c9_7_6_1_3_silence_repeats_from_the_oldest_unacknowledged(void **state)
{
    struct rig *rig = *state;
    message_under_way(rig);
    is_acknowledged(rig, RIG_OURS);
    waits(rig, RIG_ACK_TIMER - 1);
    is_silent(rig);
    waits(rig, 1);
    sends(rig, SEND_MIDDLE, RIG_OURS + 1);
    assert_memory_equal(rig->carried, rig->memory + 256, 256);
    sends(rig, SEND_LAST, RIG_OURS + 2);
    is_silent(rig);
}

/* IBA 9.7.6: retry_cnt repeats, so (retry_cnt + 1) periods, then RETRY_EXC. */
static void c9_7_6_1_3_retries_run_out(void **state)
{
    struct rig *rig = *state;
    uint64_t id = send_under_way(rig, RIG_OURS);
    uint64_t next = send_under_way(rig, RIG_OURS + 1);
    for (unsigned i = 0; i < 2; i++) {
        waits(rig, RIG_ACK_TIMER);
        sends(rig, SEND_ONLY, RIG_OURS);
        sends(rig, SEND_ONLY, RIG_OURS + 1);
    }
    ends_nothing(rig);
    waits(rig, RIG_ACK_TIMER);
    ends(rig, id, IBV_WC_RETRY_EXC_ERR);
    ends(rig, next, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(rig->failures, 1);
    is_silent(rig);
    assert_int_equal(rc_deadline(&rig->engine.rc), NANOS_NEVER);
}

/* A note has the oldest unacknowledged packet and the retries that were left; an RNR wait is not a time-out. */
static void time_outs_of_the_ack_timer_are_noted(void **state)
{
    struct rig *rig = *state;
    send_under_way(rig, RIG_OURS);
    is_refused(rig, SYNDROME_RNR, RIG_OURS);
    waits(rig, rnr_wait(0));
    sends(rig, SEND_ONLY, RIG_OURS);
    assert_int_equal(rig->timeouts, 0);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(rig->timeouts, i);
        waits(rig, RIG_ACK_TIMER);
        assert_int_equal(rig->timeout_psn, RIG_OURS);
        assert_int_equal(rig->retries_left, 2 - i);
        if (i < 2)
            sends(rig, SEND_ONLY, RIG_OURS);
    }
    assert_int_equal(rig->timeouts, 3);
    assert_int_equal(rig->failures, 1);
}

static void c9_7_6_1_3_an_ack_gives_the_retries_back(void **state)
{
    struct rig *rig = *state;
    for (unsigned i = 0; i < 6; i++) {
        uint64_t id = send_under_way(rig, RIG_OURS + i);
        waits(rig, RIG_ACK_TIMER);
        sends(rig, SEND_ONLY, RIG_OURS + i);
        is_acknowledged(rig, RIG_OURS + i);
        ends(rig, id, IBV_WC_SUCCESS);
    }
}

static void c9_7_6_1_3_an_ack_restarts_the_timer(void **state)
{
    struct rig *rig = *state;
    send_under_way(rig, RIG_OURS);
    send_under_way(rig, RIG_OURS + 1);
    waits(rig, RIG_ACK_TIMER - 1);
    is_acknowledged(rig, RIG_OURS);
    waits(rig, RIG_ACK_TIMER - 1);
    is_silent(rig);
    waits(rig, 1);
    sends(rig, SEND_ONLY, RIG_OURS + 1);
}

/* Verbs: timeout 0 waits for ever. */
static void c9_7_6_1_3_a_timeout_of_zero_waits_for_ever(void **state)
{
    struct rig *rig = *state;
    rig->engine.rc.settings.timeout = 0;
    send_under_way(rig, RIG_OURS);
    assert_int_equal(rc_deadline(&rig->engine.rc), NANOS_NEVER);
    waits(rig, 1000 * NANOS_SECOND);
    is_silent(rig);
    ends_nothing(rig);
}

static void a_link_that_knows_better_postpones_the_timer(void **state)
{
    struct rig *rig = *state;
    send_under_way(rig, RIG_OURS);
    for (unsigned i = 0; i < 10; i++) {
        rig->now += RIG_ACK_TIMER - 1;
        engine_expire(&rig->engine, rig->now, PEER_SLOW, REASON_NONE);
    }
    waits(rig, RIG_ACK_TIMER - 1);
    is_silent(rig);
    waits(rig, 1);
    sends(rig, SEND_ONLY, RIG_OURS);
}

static void c9_7_6_sequence_naks_run_the_retries_out(void **state)
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

/* The rest of the first answer is still taken between the repeat and its answer. */
static void c9_7_6_a_late_ack_shortens_the_repeat(void **state)
{
    struct rig *rig = *state;
    for (unsigned i = 0; i < 4; i++)
        send_under_way(rig, RIG_OURS + i);
    waits(rig, RIG_ACK_TIMER);
    sends(rig, SEND_ONLY, RIG_OURS);
    is_acknowledged(rig, RIG_OURS + 2);
    sends(rig, SEND_ONLY, RIG_OURS + 3);
    is_silent(rig);
}

/* IBA table 45: code 12 is 0.64 ms. The wait is not cut short by the ACK timer. */
static void c9_7_5_2_8_an_rnr_nak_makes_the_requester_wait(void **state)
{
    struct rig *rig = *state;
    rig->engine.rc.settings.timeout = 1; /* 8 us */
    send_under_way(rig, RIG_OURS);
    is_refused(rig, SYNDROME_RNR | 12, RIG_OURS);
    assert_int_equal(rc_deadline(&rig->engine.rc), rig->now + 640 * NANOS_MICROSECOND);
    post(rig, .opcode = IBV_WR_SEND);
    waits(rig, 640 * NANOS_MICROSECOND - 1);
    is_silent(rig);
    waits(rig, 1);
    sends(rig, SEND_ONLY, RIG_OURS);
    sends(rig, SEND_ONLY, RIG_OURS + 1);
}

/* The two are different timers: without an ACK timer the owner is still asked to look again. */
static void c9_7_5_2_8_an_rnr_wait_ends_without_an_ack_timer(void **state)
{
    struct rig *rig = *state;
    rig->engine.rc.settings.timeout = 0;
    send_under_way(rig, RIG_OURS);
    assert_int_equal(rig->told, NANOS_NEVER);
    is_refused(rig, SYNDROME_RNR | 12, RIG_OURS);
    assert_int_equal(rig->told, rig->now + 640 * NANOS_MICROSECOND);
    waits(rig, rig->told - rig->now);
    sends(rig, SEND_ONLY, RIG_OURS);
    assert_int_equal(rig->told, NANOS_NEVER);
}

/* Nor is the owner left with the later time of an ACK timer that it knows already. */
static void c9_7_5_2_8_the_owner_hears_of_an_rnr_wait_that_is_sooner(void **state)
{
    struct rig *rig = *state;
    send_under_way(rig, RIG_OURS);
    assert_int_equal(rig->told, rig->now + RIG_ACK_TIMER);
    is_refused(rig, SYNDROME_RNR | 12, RIG_OURS);
    assert_int_equal(rig->told, rig->now + 640 * NANOS_MICROSECOND);
}

/* An ACK ended the deadline that the owner had, and the next one is later than that. */
static void an_owner_that_looked_in_vain_hears_of_the_next_deadline(void **state)
{
    struct rig *rig = *state;
    send_under_way(rig, RIG_OURS);
    is_acknowledged(rig, RIG_OURS);
    waits(rig, RIG_ACK_TIMER);
    assert_int_equal(rig->told, NANOS_NEVER);
    send_under_way(rig, RIG_OURS + 1);
    assert_int_equal(rig->told, rig->now + RIG_ACK_TIMER);
}

static void c9_7_5_2_8_the_rnr_wait_is_neither_postponed_nor_cut_short(void **state)
{
    struct rig *rig = *state;
    send_under_way(rig, RIG_OURS);
    is_refused(rig, SYNDROME_RNR | 12, RIG_OURS);
    nanos deadline = rc_deadline(&rig->engine.rc);
    engine_expire(&rig->engine, rig->now + 1, PEER_SLOW, REASON_NONE);
    is_refused(rig, SYNDROME_RNR | 1, RIG_OURS);
    is_refused(rig, SYNDROME_NAK_SEQUENCE, RIG_OURS);
    assert_int_equal(rc_deadline(&rig->engine.rc), deadline);
    is_silent(rig);
}

static void c9_7_5_2_8_rnr_retries_run_out(void **state)
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
static void c9_7_5_2_8_rnr_retry_seven_is_for_ever(void **state)
{
    struct rig *rig = *state;
    rig->engine.rc.settings.rnr_retry = 7;
    uint64_t id = send_under_way(rig, RIG_OURS);
    for (unsigned i = 0; i < 100; i++) {
        is_refused(rig, SYNDROME_RNR, RIG_OURS);
        waits(rig, rnr_wait(0));
        sends(rig, SEND_ONLY, RIG_OURS);
    }
    is_acknowledged(rig, RIG_OURS);
    ends(rig, id, IBV_WC_SUCCESS);
}

static void c9_7_5_2_8_the_rnr_table_is_the_specifications(void **state)
{
    assert_int_equal(rnr_wait(0), 655360 * NANOS_MICROSECOND);
    assert_int_equal(rnr_wait(1), 10 * NANOS_MICROSECOND);
    assert_int_equal(rnr_wait(14), 1280 * NANOS_MICROSECOND);
    assert_int_equal(rnr_wait(31), 491520 * NANOS_MICROSECOND);
    for (unsigned i = 2; i < 32; i++)
        assert_true(rnr_wait(i) > rnr_wait(i - 1));
}

static void c9_7_6_a_late_ack_within_a_message_shortens_the_repeat_too(void **state)
{
    struct rig *rig = *state;
    message_under_way(rig);
    waits(rig, RIG_ACK_TIMER);
    is_acknowledged(rig, RIG_OURS + 1);
    sends(rig, SEND_LAST, RIG_OURS + 2);
    is_silent(rig);
}

static void c9_7_5_2_8_an_ack_does_not_end_the_rnr_wait(void **state)
{
    struct rig *rig = *state;
    send_under_way(rig, RIG_OURS);
    send_under_way(rig, RIG_OURS + 1);
    is_refused(rig, SYNDROME_RNR | 12, RIG_OURS);
    nanos deadline = rc_deadline(&rig->engine.rc);
    is_acknowledged(rig, RIG_OURS);
    assert_int_equal(rc_deadline(&rig->engine.rc), deadline);
    is_silent(rig);
}

static void c9_7_6_1_3_an_rnr_nak_gives_the_retries_back(void **state)
{
    struct rig *rig = *state;
    rig->engine.rc.settings.rnr_retry = 7;
    send_under_way(rig, RIG_OURS);
    for (unsigned i = 0; i < 6; i++) {
        waits(rig, RIG_ACK_TIMER);
        sends(rig, SEND_ONLY, RIG_OURS);
        is_refused(rig, SYNDROME_RNR | 1, RIG_OURS);
        waits(rig, rnr_wait(1));
        sends(rig, SEND_ONLY, RIG_OURS);
    }
    ends_nothing(rig);
}

/* IBA 9.7.6.1.3: the timer may run for up to four times the value; on a network it does after silence, doubling. */
static void c9_7_6_1_3_on_a_network_silence_is_waited_for_longer(void **state)
{
    struct rig *rig = *state;
    const nanos value = 4096ull << rig->engine.rc.settings.timeout;
    rig->engine.rc.settings.first_window = 4;
    rig->engine.rc.settings.retry_count = rig->engine.rc.requester.retries_left = 4;
    post(rig, .opcode = IBV_WR_SEND, .length = 8);
    sends(rig, SEND_ONLY, RIG_OURS);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(rc_deadline(&rig->engine.rc) - rig->now, value << (i < 2 ? i : 2));
        waits(rig, value << (i < 2 ? i : 2));
        sends(rig, SEND_ONLY, RIG_OURS);
    }
    is_acknowledged(rig, RIG_OURS);
    post(rig, .opcode = IBV_WR_SEND, .length = 8);
    sends(rig, SEND_ONLY, RIG_OURS + 1);
    assert_int_equal(rc_deadline(&rig->engine.rc) - rig->now, value);
}

static void c9_7_6_1_3_each_packet_of_a_response_restarts_the_timer(void **state)
{
    struct rig *rig = *state;
    read_under_way(rig, 600);
    for (unsigned i = 0; i < 2; i++) {
        waits(rig, RIG_ACK_TIMER - 1);
        rig_arrive(rig, OPERATION_READ_RESPONSE_FIRST + i, RIG_OURS + i, (struct rig_packet){.bytes = 256});
    }
    waits(rig, RIG_ACK_TIMER - 1);
    is_silent(rig);
    waits(rig, 1);
    assert_int_equal(sends(rig, READ_REQUEST, RIG_OURS + 2)->length, 88);
}

static void c9_7_6_1_3_without_retries_the_first_silence_is_the_last(void **state)
{
    struct rig *rig = *state;
    rig->engine.rc.settings.retry_count = rig->engine.rc.requester.retries_left = 0;
    uint64_t id = send_under_way(rig, RIG_OURS);
    waits(rig, RIG_ACK_TIMER);
    ends(rig, id, IBV_WC_RETRY_EXC_ERR);
}

/* The ACK timer runs while something is unanswered, not only since the last request. */
static void c9_7_6_1_3_a_new_request_does_not_put_the_timer_off(void **state)
{
    struct rig *rig = *state;
    send_under_way(rig, RIG_OURS);
    waits(rig, RIG_ACK_TIMER - 1);
    send_under_way(rig, RIG_OURS + 1);
    waits(rig, 1);
    sends(rig, SEND_ONLY, RIG_OURS);
    sends(rig, SEND_ONLY, RIG_OURS + 1);
}

static void c9_7_5_2_8_without_rnr_retries_the_first_nak_is_the_last(void **state)
{
    struct rig *rig = *state;
    rig->engine.rc.settings.rnr_retry = rig->engine.rc.requester.rnr_left = 0;
    uint64_t id = send_under_way(rig, RIG_OURS), next = send_under_way(rig, RIG_OURS + 1);
    is_refused(rig, SYNDROME_RNR | 1, RIG_OURS);
    ends(rig, id, IBV_WC_RNR_RETRY_EXC_ERR);
    ends(rig, next, IBV_WC_WR_FLUSH_ERR);
}

static void c9_7_5_2_8_an_ack_gives_the_rnr_retries_back(void **state)
{
    struct rig *rig = *state;
    for (unsigned i = 0; i < 6; i++) {
        uint64_t id = send_under_way(rig, RIG_OURS + i);
        is_refused(rig, SYNDROME_RNR | 1, RIG_OURS + i);
        waits(rig, rnr_wait(1));
        sends(rig, SEND_ONLY, RIG_OURS + i);
        is_acknowledged(rig, RIG_OURS + i);
        ends(rig, id, IBV_WC_SUCCESS);
    }
}

/* The two counters are apart: silence between RNR NAKs doesn't count against their retries. */
static void c9_7_5_2_8_silence_takes_no_rnr_retry(void **state)
{
    struct rig *rig = *state;
    uint64_t id = send_under_way(rig, RIG_OURS);
    for (unsigned i = 0; i < 2; i++) {
        is_refused(rig, SYNDROME_RNR | 1, RIG_OURS);
        waits(rig, rnr_wait(1));
        sends(rig, SEND_ONLY, RIG_OURS);
        waits(rig, RIG_ACK_TIMER);
        sends(rig, SEND_ONLY, RIG_OURS);
    }
    ends_nothing(rig);
    is_refused(rig, SYNDROME_RNR | 1, RIG_OURS);
    ends(rig, id, IBV_WC_RNR_RETRY_EXC_ERR);
}

TESTS_OF(script, c9_7_6_1_3_silence_repeats_from_the_oldest_unacknowledged,
                 c9_7_6_1_3_retries_run_out,
                 time_outs_of_the_ack_timer_are_noted,
                 c9_7_6_1_3_an_ack_gives_the_retries_back,
                 c9_7_6_1_3_an_ack_restarts_the_timer,
                 c9_7_6_1_3_a_timeout_of_zero_waits_for_ever,
                 a_link_that_knows_better_postpones_the_timer,
                 c9_7_6_sequence_naks_run_the_retries_out,
                 c9_7_6_a_late_ack_shortens_the_repeat,
                 c9_7_5_2_8_an_rnr_nak_makes_the_requester_wait,
                 c9_7_5_2_8_an_rnr_wait_ends_without_an_ack_timer,
                 c9_7_5_2_8_the_owner_hears_of_an_rnr_wait_that_is_sooner,
                 an_owner_that_looked_in_vain_hears_of_the_next_deadline,
                 c9_7_5_2_8_the_rnr_wait_is_neither_postponed_nor_cut_short,
                 c9_7_5_2_8_rnr_retries_run_out,
                 c9_7_5_2_8_rnr_retry_seven_is_for_ever,
                 c9_7_5_2_8_the_rnr_table_is_the_specifications,
                 c9_7_6_a_late_ack_within_a_message_shortens_the_repeat_too,
                 c9_7_5_2_8_an_ack_does_not_end_the_rnr_wait,
                 c9_7_6_1_3_an_rnr_nak_gives_the_retries_back,
                 c9_7_6_1_3_on_a_network_silence_is_waited_for_longer,
                 c9_7_6_1_3_each_packet_of_a_response_restarts_the_timer,
                 c9_7_6_1_3_without_retries_the_first_silence_is_the_last,
                 c9_7_6_1_3_a_new_request_does_not_put_the_timer_off,
                 c9_7_5_2_8_without_rnr_retries_the_first_nak_is_the_last,
                 c9_7_5_2_8_an_ack_gives_the_rnr_retries_back,
                 c9_7_5_2_8_silence_takes_no_rnr_retry)
