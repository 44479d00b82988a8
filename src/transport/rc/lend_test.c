/* A responder of a connection that moves between two engines. */
#include "base/testing/group.h"
#include "transport/rc/lend.h"
#include "transport/testing/script.h"

#include <stdlib.h>

static const uint32_t first = RIG_THEIRS;

static struct rig *other_rig(void)
{
    struct rig *other = calloc(1, sizeof *other);
    assert_non_null(other);
    rig_make(other);
    rig_start(other);
    return other;
}

static void hand_over(struct rig *from, struct rig *to)
{
    assert_true(rc_may_lend(&from->engine.rc));
    struct engine_position position = rc_lend(&from->engine.rc);
    rc_take_over(&to->engine.rc, &position);
}

static void the_other_engine_goes_on_where_the_first_stood(void **state)
{
    struct rig *one = *state, *other = other_rig();
    uint64_t id = post_receive(one, 8), its = post_receive(other, 8);
    arrives(one, SEND_ONLY, first, .bytes = 8, .packet = {.ack_requested = true});
    delivers(one, id, IBV_WC_SUCCESS);
    acknowledges(one, first);
    hand_over(one, other);
    arrives(other, SEND_ONLY, first + 1, .bytes = 8, .packet = {.ack_requested = true});
    delivers(other, its, IBV_WC_SUCCESS);
    acknowledges(other, first + 1);
    assert_int_equal(other->out.msn, 2);
    hand_over(other, one);
    post_receive(one, 8);
    arrives(one, SEND_ONLY, first + 2, .bytes = 8, .packet = {.ack_requested = true});
    acknowledges(one, first + 2);
    assert_int_equal(one->out.msn, 3);
    free(other);
}

static void an_open_message_keeps_the_position(void **state)
{
    struct rig *rig = *state;
    post_receive(rig, 600);
    arrives(rig, SEND_FIRST, first, .bytes = 256);
    assert_false(rc_may_lend(&rig->engine.rc));
    arrives(rig, SEND_LAST, first + 1, .bytes = 44, .packet = {.ack_requested = true});
    assert_false(rc_may_lend(&rig->engine.rc));
    acknowledges(rig, first + 1);
    assert_true(rc_may_lend(&rig->engine.rc));
}

static void an_answer_under_way_keeps_the_position(void **state)
{
    struct rig *rig = *state;
    arrives(rig, READ_REQUEST, first, .packet = {RETH(0x40, 300)});
    sends(rig, READ_RESPONSE_FIRST, first);
    assert_false(rc_may_lend(&rig->engine.rc));
    sends(rig, READ_RESPONSE_LAST, first + 1);
    assert_true(rc_may_lend(&rig->engine.rc));
    assert_int_equal(rc_lend(&rig->engine.rc).expected_psn, first + 2);
}

static void a_failed_engine_keeps_the_position(void **state)
{
    struct rig *rig = *state;
    arrives(rig, SEND_LAST, first, .bytes = 8);
    refuses(rig, SYNDROME_NAK_INVALID_REQUEST, first);
    assert_false(rc_may_lend(&rig->engine.rc));
}

/* The silence after an RNR NAK is lent, too: a packet that was sent after the refused message gets no answer from
 * the other engine. */
static void a_gap_that_was_told_is_not_told_again(void **state)
{
    struct rig *one = *state, *other = other_rig();
    arrives(one, SEND_ONLY, first, .bytes = 8);
    refuses(one, SYNDROME_RNR | one->engine.rc.settings.min_rnr_timer, first);
    hand_over(one, other);
    arrives(other, SEND_ONLY, first + 1, .bytes = 8, .packet = {.ack_requested = true});
    is_silent(other);
    uint64_t id = post_receive(other, 8);
    arrives(other, SEND_ONLY, first, .bytes = 8, .packet = {.ack_requested = true});
    delivers(other, id, IBV_WC_SUCCESS);
    acknowledges(other, first);
    free(other);
}

/* The atomic's result is not in memory any more. */
static void a_repeated_atomic_is_answered_by_who_executed_it(void **state)
{
    struct rig *one = *state, *other = other_rig();
    arrives(one, FETCH_ADD, first, .packet = {RETH(0x40, 0), .swap_or_add = 5});
    sends(one, ATOMIC_ACKNOWLEDGE, first);
    uint64_t original = one->out.original;
    uint8_t after = one->memory[0x40];
    hand_over(one, other);
    post_receive(other, 8);
    arrives(other, SEND_ONLY, first + 1, .bytes = 8, .packet = {.ack_requested = true});
    acknowledges(other, first + 1);
    hand_over(other, one);
    arrives(one, FETCH_ADD, first, .packet = {RETH(0x40, 0), .swap_or_add = 5});
    sends(one, ATOMIC_ACKNOWLEDGE, first);
    assert_int_equal(one->out.original, original);
    assert_int_equal(one->memory[0x40], after);
    free(other);
}

static void answer(struct rig *rig, enum operation operation, uint32_t psn, uint8_t syndrome, uint32_t msn)
{
    rc_responded(&rig->engine.rc,
                 &(struct packet){
                     .opcode = (uint8_t)(SERVICE_RC << 5 | operation), .psn = psn, .syndrome = syndrome, .msn = msn});
}

/* And the peer learns at once of requests that were not acknowledged. */
static void the_lender_goes_on_behind_the_last_answer(void **state)
{
    struct rig *rig = *state;
    rc_lend(&rig->engine.rc);
    answer(rig, OPERATION_ACKNOWLEDGE, first + 4, SYNDROME_ACK, 3);
    answer(rig, OPERATION_ACKNOWLEDGE, first + 2, SYNDROME_ACK, 3);
    answer(rig, OPERATION_READ_RESPONSE_MIDDLE, first + 6, 0, 0);
    answer(rig, OPERATION_ACKNOWLEDGE, first + 9, SYNDROME_RNR, 4);
    rc_reclaim(&rig->engine.rc);
    refuses(rig, SYNDROME_NAK_SEQUENCE, first + 9);
    assert_int_equal(rig->out.msn, 4);
    post_receive(rig, 8);
    arrives(rig, SEND_ONLY, first + 9, .bytes = 8, .packet = {.ack_requested = true});
    acknowledges(rig, first + 9);
}

/* An answer in the middle of a READ has no AETH, and so no MSN: its owner may end within the READ. */
static void a_read_that_its_receiver_leaves_half_answered_keeps_the_msn(void **state)
{
    static const enum operation with_msn[] = {OPERATION_READ_RESPONSE_FIRST, OPERATION_READ_RESPONSE_LAST,
                                              OPERATION_READ_RESPONSE_ONLY, OPERATION_ACKNOWLEDGE,
                                              OPERATION_ATOMIC_ACKNOWLEDGE};
    struct rig *rig = *state;
    rc_lend(&rig->engine.rc);
    for (uint32_t i = 0; i < sizeof with_msn / sizeof *with_msn; i++) {
        answer(rig, with_msn[i], first + 2 * i, SYNDROME_ACK, 11 + i);
        answer(rig, OPERATION_READ_RESPONSE_MIDDLE, first + 2 * i + 1, 0, 0);
        rc_reclaim(&rig->engine.rc);
        refuses(rig, SYNDROME_NAK_SEQUENCE, first + 2 * i + 2);
        assert_int_equal(rig->out.msn, 11 + i);
    }
}

/* Only an ACKNOWLEDGE's syndrome refuses; the syndrome of an answer with data does not. */
static void what_was_refused_is_expected_again_and_what_was_answered_is_not(void **state)
{
    static const struct {
        enum operation operation;
        uint8_t syndrome;
        uint32_t next;
    } rows[] = {
        {OPERATION_ACKNOWLEDGE, SYNDROME_ACK, 1},
        {OPERATION_ACKNOWLEDGE, SYNDROME_RNR, 0},
        {OPERATION_ACKNOWLEDGE, SYNDROME_NAK_REMOTE_ACCESS, 0},
        {OPERATION_READ_RESPONSE_LAST, SYNDROME_ACK, 1},
        {OPERATION_READ_RESPONSE_MIDDLE, SYNDROME_RNR, 1},
    };
    struct rig *rig = *state;
    uint32_t at = first + 1;
    rc_lend(&rig->engine.rc);
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++, at += 5) {
        answer(rig, rows[i].operation, at, rows[i].syndrome, 1);
        rc_reclaim(&rig->engine.rc);
        refuses(rig, SYNDROME_NAK_SEQUENCE, at + rows[i].next);
    }
}

static void an_answer_to_a_repeated_request_moves_nothing_back(void **state)
{
    struct rig *rig = *state;
    rc_lend(&rig->engine.rc);
    answer(rig, OPERATION_ACKNOWLEDGE, first + 4, SYNDROME_ACK, 3);
    answer(rig, OPERATION_ACKNOWLEDGE, first + 3, SYNDROME_ACK, 3);
    answer(rig, OPERATION_ACKNOWLEDGE, first - 1, SYNDROME_RNR, 3);
    rc_reclaim(&rig->engine.rc);
    refuses(rig, SYNDROME_NAK_SEQUENCE, first + 5);
}

/* The first packet shows that the peer is connected, whichever engine takes it; once we transmit, no event follows. */
static void lending_shows_once_that_the_peer_is_there(void **state)
{
    struct rig *rig = *state;
    struct rig *early = calloc(1, sizeof *early);
    rig_make(early);
    engine_start_receiving(&early->engine, first);
    rc_lend(&early->engine.rc);
    raises(early, IBV_EVENT_COMM_EST);
    rc_lend(&early->engine.rc);
    raises_nothing(early);
    free(early);
    rc_lend(&rig->engine.rc);
    raises_nothing(rig);
}

static void who_takes_over_has_heard_of_the_peer(void **state)
{
    struct rig *late = calloc(1, sizeof *late);
    rig_make(late);
    engine_start_receiving(&late->engine, 0);
    rc_take_over(&late->engine.rc, &(struct engine_position){.expected_psn = first, .msn = 7});
    post_receive(late, 8);
    arrives(late, SEND_ONLY, first, .bytes = 8, .packet = {.ack_requested = true});
    raises_nothing(late);
    acknowledges(late, first);
    assert_int_equal(late->out.msn, 8);
    free(late);
}

static void an_engine_that_does_not_receive_has_no_position(void **state)
{
    struct rig *fresh = calloc(1, sizeof *fresh);
    rig_make(fresh);
    assert_false(rc_may_lend(&fresh->engine.rc));
    engine_start_receiving(&fresh->engine, first);
    assert_true(rc_may_lend(&fresh->engine.rc));
    free(fresh);
}

static void the_rest_of_a_message_that_is_lost_with_its_receiver_is_refused(void **state)
{
    struct rig *rig = *state;
    rc_lend(&rig->engine.rc);
    answer(rig, OPERATION_ACKNOWLEDGE, first, SYNDROME_ACK, 0);
    rc_reclaim(&rig->engine.rc);
    refuses(rig, SYNDROME_NAK_SEQUENCE, first + 1);
    arrives(rig, SEND_LAST, first + 1, .bytes = 8, .packet = {.ack_requested = true});
    refuses(rig, SYNDROME_NAK_INVALID_REQUEST, first + 1);
}

TESTS_OF(script, the_other_engine_goes_on_where_the_first_stood,
                 an_open_message_keeps_the_position,
                 an_answer_under_way_keeps_the_position,
                 a_failed_engine_keeps_the_position,
                 a_gap_that_was_told_is_not_told_again,
                 a_repeated_atomic_is_answered_by_who_executed_it,
                 the_lender_goes_on_behind_the_last_answer,
                 a_read_that_its_receiver_leaves_half_answered_keeps_the_msn,
                 what_was_refused_is_expected_again_and_what_was_answered_is_not,
                 an_answer_to_a_repeated_request_moves_nothing_back,
                 lending_shows_once_that_the_peer_is_there,
                 who_takes_over_has_heard_of_the_peer,
                 an_engine_that_does_not_receive_has_no_position,
                 the_rest_of_a_message_that_is_lost_with_its_receiver_is_refused)
