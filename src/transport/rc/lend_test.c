/* One connection, two engines, one responder that goes from one to the other. */
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

/* The silence after an RNR NAK goes along: a packet that was sent behind the refused message gets no answer in the
 * other. */
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

/* Its result is not in memory any more. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        script(the_other_engine_goes_on_where_the_first_stood),
        script(an_open_message_keeps_the_position),
        script(an_answer_under_way_keeps_the_position),
        script(a_failed_engine_keeps_the_position),
        script(a_gap_that_was_told_is_not_told_again),
        script(a_repeated_atomic_is_answered_by_who_executed_it),
        script(the_lender_goes_on_behind_the_last_answer),
        script(the_rest_of_a_message_that_is_lost_with_its_receiver_is_refused),
    };
    return cmocka_run_group_tests_name("lend", tests, NULL, NULL);
}
