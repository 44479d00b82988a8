/* Acknowledgements that were not requested: where nothing gets lost, only work that a program waits for requests one
 * (IBA 9.7.3 leaves that to the requester), and the responder acknowledges the rest later. */
#include "base/testing/group.h"
#include "transport/testing/script.h"

#include "transport/rc/completer.h"
#include "transport/rc/direct.h"

static const uint32_t first = RIG_THEIRS;

enum { MASK = 3 }; /* RIG_OURS lacks its bits */

/* -- the requester */

static void patient(struct rig *rig)
{
    rig->engine.rc.settings.ack_mask = MASK;
}

static void asks(struct rig *rig, enum operation operation, uint32_t psn, bool wanted)
{
    const struct packet *packet = script_sends(rig, operation, psn, __FILE__, __LINE__);
    if (packet->ack_requested != wanted)
        fail_msg("psn %u asks: %d", psn, packet->ack_requested);
}

static void c9_7_3_work_that_is_not_signalled_asks_now_and_then(void **state)
{
    struct rig *rig = *state;
    patient(rig);
    for (uint32_t i = 0; i < 9; i++)
        post(rig, .opcode = i & 1 ? IBV_WR_RDMA_WRITE : IBV_WR_SEND, .length = 8, .rkey = 9);
    for (uint32_t i = 0; i < 9; i++)
        asks(rig, i & 1 ? OPERATION_WRITE_ONLY : OPERATION_SEND_ONLY, RIG_OURS + i, !(i & MASK));
}

static void c9_7_3_work_that_is_signalled_always_asks(void **state)
{
    struct rig *rig = *state;
    patient(rig);
    for (uint32_t i = 0; i < 5; i++)
        post(rig, .opcode = IBV_WR_SEND, .length = 8, .flags = i == 2 ? IBV_SEND_SIGNALED : 0);
    for (uint32_t i = 0; i < 5; i++)
        asks(rig, OPERATION_SEND_ONLY, RIG_OURS + i, i == 2 || !(i & MASK));
}

/* Many packets, and those whose bytes wait in the sender's memory. */
static void c9_7_3_long_messages_always_ask(void **state)
{
    struct rig *rig = *state;
    patient(rig);
    rig->engine.rc.settings.reference_segment = 1024;
    rig->engine.rc.settings.reference_from = 700;
    post(rig, .opcode = IBV_WR_SEND, .length = 8);
    post(rig, .opcode = IBV_WR_SEND, .length = 300);
    post(rig, .opcode = IBV_WR_SEND, .length = 800);
    asks(rig, OPERATION_SEND_ONLY, RIG_OURS, true);
    sends(rig, SEND_FIRST, RIG_OURS + 1);
    asks(rig, OPERATION_SEND_LAST, RIG_OURS + 2, true);
    asks(rig, OPERATION_SEND_ONLY, RIG_OURS + 3, true);
    assert_true(rig->out.payload.by_reference);
}

static void c9_7_3_what_is_repeated_always_asks(void **state)
{
    struct rig *rig = *state;
    patient(rig);
    for (uint32_t i = 0; i < 4; i++)
        post(rig, .opcode = IBV_WR_SEND, .length = 8);
    for (uint32_t i = 0; i < 4; i++)
        asks(rig, OPERATION_SEND_ONLY, RIG_OURS + i, !i);
    is_acknowledged(rig, RIG_OURS);
    waits(rig, RIG_ACK_TIMER);
    post(rig, .opcode = IBV_WR_SEND, .length = 8);
    post(rig, .opcode = IBV_WR_SEND, .length = 8);
    for (uint32_t i = 1; i < 4; i++)
        asks(rig, OPERATION_SEND_ONLY, RIG_OURS + i, true);
    asks(rig, OPERATION_SEND_ONLY, RIG_OURS + 4, true);
    asks(rig, OPERATION_SEND_ONLY, RIG_OURS + 5, false);
}

static bool do_not(struct engine_owner *owner, const struct direct_works *works)
{
    return false;
}

/* A READ or WRITE without a packet waits until nothing is on its way, so where there may be one soon all work asks. */
static void work_near_what_is_done_directly_always_asks(void **state)
{
    struct rig *rig = *state;
    uint32_t psn = RIG_OURS;
    patient(rig);
    rig->engine.rc.settings.direct = true;
    post(rig, .opcode = IBV_WR_RDMA_WRITE, .length = 8, .rkey = 9);
    rc_direct(&rig->engine.rc, do_not);
    for (; psn < RIG_OURS + DIRECT_NEAR; psn++) {
        asks(rig, psn == RIG_OURS ? OPERATION_WRITE_ONLY : OPERATION_SEND_ONLY, psn, psn + 1 < RIG_OURS + DIRECT_NEAR);
        is_acknowledged(rig, psn);
        post(rig, .opcode = IBV_WR_SEND, .length = 8);
    }
    asks(rig, OPERATION_SEND_ONLY, psn, true);
    post(rig, .opcode = IBV_WR_SEND, .length = 8);
    asks(rig, OPERATION_SEND_ONLY, psn + 1, false);
}

/* The owner knows that a peer which has ended had taken the message. */
static void what_did_not_ask_may_be_presumed_to_have_arrived(void **state)
{
    struct rig *rig = *state;
    patient(rig);
    uint64_t first_id = post(rig, .opcode = IBV_WR_SEND, .length = 8);
    uint64_t second = post(rig, .opcode = IBV_WR_SEND, .length = 8);
    uint64_t third = post(rig, .opcode = IBV_WR_RDMA_WRITE, .length = 8, .rkey = 9);
    asks(rig, OPERATION_SEND_ONLY, RIG_OURS, true);
    asks(rig, OPERATION_SEND_ONLY, RIG_OURS + 1, false);
    asks(rig, OPERATION_WRITE_ONLY, RIG_OURS + 2, false);
    assert_false(completer_presume(&rig->engine.rc, rig->now)); /* the first was not answered */
    ends_nothing(rig);
    is_acknowledged(rig, RIG_OURS);
    ends(rig, first_id, IBV_WC_SUCCESS);
    rc_drain(&rig->engine.rc, true);
    assert_true(completer_presume(&rig->engine.rc, rig->now));
    raises(rig, IBV_EVENT_SQ_DRAINED);
    ends(rig, second, IBV_WC_SUCCESS);
    ends(rig, third, IBV_WC_SUCCESS);
    assert_int_equal(rc_deadline(&rig->engine.rc), NANOS_NEVER);
    assert_false(completer_presume(&rig->engine.rc, rig->now));
}

static void what_somebody_waits_for_may_not(void **state)
{
    struct rig *rig = *state;
    patient(rig);
    post(rig, .opcode = IBV_WR_SEND, .length = 8);
    sends(rig, SEND_ONLY, RIG_OURS);
    is_acknowledged(rig, RIG_OURS);
    ends(rig, 1, IBV_WC_SUCCESS);
    post(rig, .opcode = IBV_WR_SEND, .length = 8);
    post(rig, .opcode = IBV_WR_SEND, .length = 8, .flags = IBV_SEND_SIGNALED);
    sends(rig, SEND_ONLY, RIG_OURS + 1);
    sends(rig, SEND_ONLY, RIG_OURS + 2);
    assert_false(completer_presume(&rig->engine.rc, rig->now));
    is_acknowledged(rig, RIG_OURS + 2);
    ends(rig, 2, IBV_WC_SUCCESS);
    ends(rig, 3, IBV_WC_SUCCESS);
    post(rig, .opcode = IBV_WR_SEND, .length = 600);
    sends(rig, SEND_FIRST, RIG_OURS + 3);
    assert_false(completer_presume(&rig->engine.rc, rig->now));
    ends_nothing(rig);
}

static void what_is_being_repeated_may_not(void **state)
{
    struct rig *rig = *state;
    patient(rig);
    for (uint32_t i = 0; i < 3; i++)
        post(rig, .opcode = IBV_WR_SEND, .length = 8);
    for (uint32_t i = 0; i < 3; i++)
        sends(rig, SEND_ONLY, RIG_OURS + i);
    is_acknowledged(rig, RIG_OURS);
    ends(rig, 1, IBV_WC_SUCCESS);
    waits(rig, RIG_ACK_TIMER);
    assert_false(completer_presume(&rig->engine.rc, rig->now));
    sends(rig, SEND_ONLY, RIG_OURS + 1);
    assert_false(completer_presume(&rig->engine.rc, rig->now));
    ends_nothing(rig);
}

/* -- the responder */

static void take_unasked(struct rig *rig, uint32_t psn)
{
    post_receive(rig, 8);
    arrives(rig, SEND_ONLY, psn, .bytes = 8);
    is_silent(rig);
}

static void c9_7_5_1_what_nobody_asked_about_is_acknowledged_when_its_owner_says_so(void **state)
{
    struct rig *rig = *state;
    take_unasked(rig, first);
    take_unasked(rig, first + 1);
    assert_true(rc_owes_late(&rig->engine.rc));
    engine_acknowledge_late(&rig->engine);
    acknowledges(rig, first + 1);
    assert_int_equal(rig->out.msn, 2);
    assert_false(rc_owes_late(&rig->engine.rc));
    engine_acknowledge_late(&rig->engine);
    is_silent(rig);
}

static void c9_7_5_1_2_the_next_that_asks_acknowledges_all_before(void **state)
{
    struct rig *rig = *state;
    take_unasked(rig, first);
    post_receive(rig, 8);
    arrives(rig, SEND_ONLY, first + 1, .bytes = 8, .packet = {.ack_requested = true});
    acknowledges(rig, first + 1);
    assert_false(rc_owes_late(&rig->engine.rc));
    take_unasked(rig, first + 2);
    arrives(rig, READ_REQUEST, first + 3, .packet = {RETH(0x40, 4)});
    sends(rig, READ_RESPONSE_ONLY, first + 3);
    take_unasked(rig, first + 4);
    arrives(rig, SEND_ONLY, first + 6, .bytes = 8);
    refuses(rig, SYNDROME_NAK_SEQUENCE, first + 5);
    engine_acknowledge_late(&rig->engine);
    is_silent(rig);
}

/* The messages arrive in one round, so that one ACK covers both. */
static void c9_7_5_1_2_an_ack_that_is_due_tells_of_what_came_behind_it(void **state)
{
    struct rig *rig = *state;
    post_receive(rig, 8);
    post_receive(rig, 8);
    arrives(rig, SEND_ONLY, first, .bytes = 8, .packet = {.ack_requested = true});
    arrives(rig, SEND_ONLY, first + 1, .bytes = 8);
    acknowledges(rig, first + 1);
    engine_acknowledge_late(&rig->engine);
    is_silent(rig);
}

/* A requester that gets a reply has had the ACK of its request before, as from an adapter. */
static void it_goes_before_the_next_request(void **state)
{
    struct rig *rig = *state;
    take_unasked(rig, first);
    post(rig, .opcode = IBV_WR_SEND, .length = 8);
    acknowledges(rig, first);
    sends(rig, SEND_ONLY, RIG_OURS);
    is_silent(rig);
}

static bool do_directly(struct engine_owner *owner, const struct direct_works *works)
{
    return true;
}

static void it_leaves_with_what_is_done_without_a_packet(void **state)
{
    struct rig *rig = *state;
    rig->engine.rc.settings.direct = true;
    take_unasked(rig, first);
    uint64_t id = post(rig, .opcode = IBV_WR_RDMA_WRITE, .length = 8, .rkey = 9);
    rc_direct(&rig->engine.rc, do_directly);
    ends(rig, id, IBV_WC_SUCCESS);
    acknowledges(rig, first);
    is_silent(rig);
}

/* The ACK of the repeat must not seem to acknowledge the lost response of an earlier READ. */
static void c9_7_5_1_2_a_repeat_is_acknowledged_alone(void **state)
{
    struct rig *rig = *state;
    take_unasked(rig, first);
    arrives(rig, READ_REQUEST, first + 1, .packet = {RETH(0x40, 4)});
    sends(rig, READ_RESPONSE_ONLY, first + 1);
    take_unasked(rig, first + 2);
    arrives(rig, SEND_ONLY, first, .bytes = 8, .packet = {.ack_requested = true});
    acknowledges(rig, first);
    is_silent(rig);
    engine_acknowledge_late(&rig->engine);
    acknowledges(rig, first + 2);
    is_silent(rig);
}

static void where_packets_get_lost_nobody_is_told_unasked(void **state)
{
    struct rig *rig = *state;
    rig->engine.rc.settings.first_window = 4;
    take_unasked(rig, first);
    assert_false(rc_owes_late(&rig->engine.rc));
}

static void who_fails_tells_of_what_it_had_taken(void **state)
{
    struct rig *rig = *state;
    post(rig, .opcode = IBV_WR_SEND, .length = 8);
    sends(rig, SEND_ONLY, RIG_OURS);
    take_unasked(rig, first);
    is_refused(rig, SYNDROME_NAK_REMOTE_OPERATION, RIG_OURS);
    assert_true(rig->engine.rc.failed);
    acknowledges(rig, first);
    is_silent(rig);
}

/* The program has the message, and moves its queue pair to ERR, as when it disconnects: the peer's work has ended, and is
 * not flushed when the peer hears of that. */
static void who_is_moved_to_err_tells_of_what_it_had_taken(void **state)
{
    struct rig *rig = *state;
    take_unasked(rig, first);
    rc_flush(&rig->engine.rc);
    acknowledges(rig, first);
    is_silent(rig);
}

/* -- along with a request */

static struct rc *takes_along(struct rig *rig)
{
    rig->engine.rc.settings.acks_along = true;
    return &rig->engine.rc;
}

static uint64_t call(struct rig *rig)
{
    return post(rig, .opcode = IBV_WR_SEND, .length = 8, .flags = IBV_SEND_SIGNALED);
}

static void is_acknowledged_along(struct rig *rig, uint32_t psn)
{
    rc_receive_along(&rig->engine.rc, RC_ALONG | psn, rig->now);
}

static bool transmits_single(struct rig *rig)
{
    struct iovec pieces[PAYLOAD_PIECES_MAX];
    return rc_transmit_single(&rig->engine.rc, &rig->out, pieces, rig->now);
}

static void what_nobody_asked_about_goes_along_with_a_request(void **state)
{
    struct rig *rig = *state;
    struct rc *rc = takes_along(rig);
    take_unasked(rig, first);
    take_unasked(rig, first + 1);
    call(rig);
    assert_true(transmits_single(rig));
    assert_int_equal(rig->out.psn, RIG_OURS);
    assert_int_equal(rc_take_along(rc), RC_ALONG | (first + 1));
    assert_int_equal(rc_take_along(rc), 0);
    assert_false(rc_owes_late(rc));
    is_silent(rig);
}

static void without_a_link_that_takes_it_along_it_goes_before(void **state)
{
    struct rig *rig = *state;
    takes_along(rig)->settings.acks_along = false;
    take_unasked(rig, first);
    call(rig);
    assert_false(transmits_single(rig));
    acknowledges(rig, first);
    sends(rig, SEND_ONLY, RIG_OURS);
}

static void what_was_asked_about_does_not_wait_for_a_request(void **state)
{
    struct rig *rig = *state;
    takes_along(rig);
    post_receive(rig, 8);
    arrives(rig, SEND_ONLY, first, .bytes = 8, .packet = {.ack_requested = true});
    call(rig);
    assert_false(transmits_single(rig));
    acknowledges(rig, first);
}

static void a_message_of_many_packets_takes_none_along(void **state)
{
    struct rig *rig = *state;
    takes_along(rig);
    take_unasked(rig, first);
    post(rig, .opcode = IBV_WR_SEND, .length = 600);
    assert_false(transmits_single(rig));
    acknowledges(rig, first);
    sends(rig, SEND_FIRST, RIG_OURS);
}

static void what_did_not_leave_is_acknowledged_by_itself(void **state)
{
    struct rig *rig = *state;
    struct rc *rc = takes_along(rig);
    take_unasked(rig, first);
    call(rig);
    assert_true(transmits_single(rig));
    rc_take_back_along(rc, rc_take_along(rc));
    acknowledges(rig, first);
    rc_take_back_along(rc, 0);
    is_silent(rig);
}

static void nonsense_along_is_ignored(void **state)
{
    struct rig *rig = *state;
    struct rc *rc = takes_along(rig);
    uint64_t id = call(rig);
    is_acknowledged_along(rig, RIG_OURS); /* not sent yet */
    sends(rig, SEND_ONLY, RIG_OURS);
    rc_receive_along(rc, RIG_OURS, rig->now);
    is_acknowledged_along(rig, RIG_OURS + 1);
    is_acknowledged_along(rig, RIG_OURS - 1);
    ends_nothing(rig);
    rc_receive_along(rc, 0xfe000000 | RC_ALONG | RIG_OURS, rig->now);
    ends(rig, id, IBV_WC_SUCCESS);
}

static void who_has_failed_hears_nothing_along(void **state)
{
    struct rig *rig = *state;
    uint64_t id = call(rig);
    sends(rig, SEND_ONLY, RIG_OURS);
    rc_flush(&rig->engine.rc);
    ends(rig, id, IBV_WC_WR_FLUSH_ERR);
    is_acknowledged_along(rig, RIG_OURS);
    ends_nothing(rig);
}

static void one_ack_along_ends_all_before_it(void **state)
{
    struct rig *rig = *state;
    uint64_t one = call(rig), other = call(rig);
    call(rig);
    for (uint32_t i = 0; i < 3; i++)
        sends(rig, SEND_ONLY, RIG_OURS + i);
    is_acknowledged_along(rig, RIG_OURS + 1);
    ends(rig, one, IBV_WC_SUCCESS);
    ends(rig, other, IBV_WC_SUCCESS);
    ends_nothing(rig);
}

/* An ACK does not replace a READ's response (9.7.6.1), however it arrives. */
static void an_ack_along_ends_no_read(void **state)
{
    struct rig *rig = *state;
    read_under_way(rig, 8);
    is_acknowledged_along(rig, RIG_OURS);
    ends_nothing(rig);
}

TESTS_OF(script, c9_7_3_work_that_is_not_signalled_asks_now_and_then,
                 c9_7_3_work_that_is_signalled_always_asks,
                 c9_7_3_long_messages_always_ask,
                 c9_7_3_what_is_repeated_always_asks,
                 work_near_what_is_done_directly_always_asks,
                 what_did_not_ask_may_be_presumed_to_have_arrived,
                 what_somebody_waits_for_may_not,
                 what_is_being_repeated_may_not,
                 c9_7_5_1_what_nobody_asked_about_is_acknowledged_when_its_owner_says_so,
                 c9_7_5_1_2_the_next_that_asks_acknowledges_all_before,
                 c9_7_5_1_2_an_ack_that_is_due_tells_of_what_came_behind_it,
                 it_goes_before_the_next_request,
                 it_leaves_with_what_is_done_without_a_packet,
                 c9_7_5_1_2_a_repeat_is_acknowledged_alone,
                 where_packets_get_lost_nobody_is_told_unasked,
                 who_fails_tells_of_what_it_had_taken,
                 who_is_moved_to_err_tells_of_what_it_had_taken,
                 what_nobody_asked_about_goes_along_with_a_request,
                 without_a_link_that_takes_it_along_it_goes_before,
                 what_was_asked_about_does_not_wait_for_a_request,
                 a_message_of_many_packets_takes_none_along,
                 what_did_not_leave_is_acknowledged_by_itself,
                 nonsense_along_is_ignored,
                 who_has_failed_hears_nothing_along,
                 one_ack_along_ends_all_before_it,
                 an_ack_along_ends_no_read)
