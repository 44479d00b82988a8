/* The requester on a network: a peer that is silent for some round trips is sent the oldest packet again, and its
 * answer shows whether others were lost or all were only late. */
#include "base/testing/group.h"
#include "transport/testing/script.h"

enum { WINDOW = 8 };
static const nanos round_trip = NANOS_MILLISECOND, rto = (4 + 2) * NANOS_MILLISECOND;

/* A window of packets, a round trip that is known, and one message of three packets under way. */
static uint64_t start(struct rig *rig)
{
    rig->engine.rc.settings.first_window = WINDOW;
    rig->engine.rc.settings.timeout = 20;
    congestion_start(&rig->engine.rc.requester.congestion, WINDOW, 2 * WINDOW);
    send_under_way(rig, RIG_OURS);
    waits(rig, round_trip);
    is_acknowledged(rig, RIG_OURS);
    ends(rig, 1, IBV_WC_SUCCESS);
    uint64_t id = post(rig, .opcode = IBV_WR_SEND, .length = 600);
    sends(rig, SEND_FIRST, RIG_OURS + 1);
    sends(rig, SEND_MIDDLE, RIG_OURS + 2);
    sends(rig, SEND_LAST, RIG_OURS + 3);
    return id;
}

static unsigned window(const struct rig *rig)
{
    return rig->engine.rc.requester.congestion.window;
}

static void silence_repeats_one_packet(void **state)
{
    struct rig *rig = *state;
    start(rig);
    unsigned before = window(rig);
    waits(rig, rto - 1);
    is_silent(rig);
    waits(rig, 1);
    assert_true(sends(rig, SEND_FIRST, RIG_OURS + 1)->ack_requested);
    assert_memory_equal(rig->carried, rig->memory, 256);
    is_silent(rig);
    assert_int_equal(window(rig), before);
    assert_int_equal(rig->engine.rc.requester.retries_left, rig->engine.rc.settings.retry_count);
}

static void who_was_only_late_gets_nothing_else(void **state)
{
    struct rig *rig = *state;
    uint64_t id = start(rig);
    unsigned before = window(rig);
    waits(rig, rto);
    sends(rig, SEND_FIRST, RIG_OURS + 1);
    is_acknowledged(rig, RIG_OURS + 3);
    ends(rig, id, IBV_WC_SUCCESS);
    is_silent(rig);
    assert_true(window(rig) >= before);
}

static void a_probe_that_fills_a_hole_is_followed_by_the_rest(void **state)
{
    struct rig *rig = *state;
    uint64_t id = start(rig);
    unsigned before = window(rig);
    waits(rig, rto);
    sends(rig, SEND_FIRST, RIG_OURS + 1);
    is_acknowledged(rig, RIG_OURS + 1);
    sends(rig, SEND_MIDDLE, RIG_OURS + 2);
    sends(rig, SEND_LAST, RIG_OURS + 3);
    is_silent(rig);
    assert_true(window(rig) < before);
    is_acknowledged(rig, RIG_OURS + 3);
    ends(rig, id, IBV_WC_SUCCESS);
}

/* Some of the packets under way have arrived, and the rest may still. */
static void an_answer_for_more_than_the_probe_repeats_nothing(void **state)
{
    struct rig *rig = *state;
    start(rig);
    waits(rig, rto);
    sends(rig, SEND_FIRST, RIG_OURS + 1);
    is_acknowledged(rig, RIG_OURS + 2);
    is_silent(rig);
    waits(rig, rto);
    sends(rig, SEND_LAST, RIG_OURS + 3);
}

/* The first answer after the probe has judged it. */
static void a_later_answer_for_one_packet_is_no_hole(void **state)
{
    struct rig *rig = *state;
    start(rig);
    waits(rig, rto);
    sends(rig, SEND_FIRST, RIG_OURS + 1);
    is_acknowledged(rig, RIG_OURS + 2);
    send_under_way(rig, RIG_OURS + 4);
    is_acknowledged(rig, RIG_OURS + 3);
    is_silent(rig);
}

static void silence_after_a_probe_probes_later(void **state)
{
    struct rig *rig = *state;
    start(rig);
    waits(rig, rto);
    sends(rig, SEND_FIRST, RIG_OURS + 1);
    waits(rig, 2 * rto - 1);
    is_silent(rig);
    waits(rig, 1);
    sends(rig, SEND_FIRST, RIG_OURS + 1);
    is_silent(rig);
}

/* The receiver says itself what it misses. */
static void a_nak_after_a_probe_repeats_from_there(void **state)
{
    struct rig *rig = *state;
    start(rig);
    waits(rig, rto);
    sends(rig, SEND_FIRST, RIG_OURS + 1);
    is_refused(rig, SYNDROME_NAK_SEQUENCE, RIG_OURS + 2);
    sends(rig, SEND_MIDDLE, RIG_OURS + 2);
    sends(rig, SEND_LAST, RIG_OURS + 3);
    is_silent(rig);
}

/* Only its own answer ends a READ. */
static void a_read_is_asked_for_again(void **state)
{
    struct rig *rig = *state;
    start(rig);
    post(rig, .opcode = IBV_WR_RDMA_READ, .length = 16);
    sends(rig, READ_REQUEST, RIG_OURS + 4);
    is_acknowledged(rig, RIG_OURS + 3);
    unsigned before = window(rig);
    waits(rig, rto);
    sends(rig, READ_REQUEST, RIG_OURS + 4);
    assert_true(window(rig) < before);
}

static void a_probe_that_was_due_is_not_sent_once_all_has_arrived(void **state)
{
    struct rig *rig = *state;
    uint64_t id = start(rig);
    waits(rig, rto);
    is_acknowledged(rig, RIG_OURS + 3);
    ends(rig, id, IBV_WC_SUCCESS);
    is_silent(rig);
    assert_false(rc_has_output(&rig->engine.rc));
}

/* The probe's memory is gone: the repeat of everything finds the error, as without a probe. */
static void a_probe_that_can_not_be_built_fails_the_work(void **state)
{
    struct rig *rig = *state;
    uint64_t id = start(rig);
    rig->deregistered = true;
    waits(rig, rto);
    is_silent(rig);
    ends(rig, id, IBV_WC_LOC_PROT_ERR);
}

TESTS_OF(script, silence_repeats_one_packet,
                 who_was_only_late_gets_nothing_else,
                 a_probe_that_fills_a_hole_is_followed_by_the_rest,
                 an_answer_for_more_than_the_probe_repeats_nothing,
                 a_later_answer_for_one_packet_is_no_hole,
                 silence_after_a_probe_probes_later,
                 a_nak_after_a_probe_repeats_from_there,
                 a_read_is_asked_for_again,
                 a_probe_that_was_due_is_not_sent_once_all_has_arrived,
                 a_probe_that_can_not_be_built_fails_the_work)
