/* Settings that the owner changes while work has begun. */
#include "base/testing/group.h"
#include "transport/testing/script.h"

static struct engine_settings settings_of(const struct rig *rig)
{
    return *engine_settings_of(&rig->engine);
}

static void set_timeout(struct rig *rig, uint8_t timeout)
{
    struct engine_settings settings = settings_of(rig);
    settings.timeout = timeout;
    engine_configure(&rig->engine, &settings);
    engine_expire(&rig->engine, rig->now, PEER_SLOW, REASON_NONE);
}

static void set_segment(struct rig *rig, uint32_t segment)
{
    struct engine_settings settings = settings_of(rig);
    settings.segment = segment;
    engine_configure(&rig->engine, &settings);
}

static void set_window(struct rig *rig, uint32_t window)
{
    struct engine_settings settings = settings_of(rig);
    settings.window = window;
    engine_configure(&rig->engine, &settings);
}

static void a_timeout_runs_for_what_was_sent_without_one(void **state)
{
    struct rig *rig = *state;
    set_timeout(rig, 0);
    uint64_t id = send_under_way(rig, RIG_OURS);
    waits(rig, 100 * NANOS_SECOND);
    set_timeout(rig, RIG_TIMEOUT);
    assert_int_equal(rig->told, rig->now + RIG_ACK_TIMER);
    for (unsigned i = 0; i < 2; i++) {
        waits(rig, RIG_ACK_TIMER);
        sends(rig, SEND_ONLY, RIG_OURS);
    }
    waits(rig, RIG_ACK_TIMER);
    ends(rig, id, IBV_WC_RETRY_EXC_ERR);
}

static void a_timeout_of_zero_ends_the_timer(void **state)
{
    struct rig *rig = *state;
    rig_make(rig);
    rig->engine.rc.settings.first_window = 4; /* with an early timer, too */
    rig_start(rig);
    send_under_way(rig, RIG_OURS);
    waits(rig, NANOS_MILLISECOND);
    is_acknowledged(rig, RIG_OURS);
    send_under_way(rig, RIG_OURS + 1);
    assert_true(rig->engine.rc.requester.rto.deadline < rig->now + RIG_ACK_TIMER);
    set_timeout(rig, 0);
    assert_int_equal(rc_deadline(&rig->engine.rc), NANOS_NEVER);
    waits(rig, 100 * NANOS_SECOND);
    is_silent(rig);
}

static void no_timer_runs_for_nothing(void **state)
{
    struct rig *rig = *state;
    set_timeout(rig, RIG_TIMEOUT - 1);
    assert_int_equal(rc_deadline(&rig->engine.rc), NANOS_NEVER);
}

static void a_wait_after_an_rnr_nak_stays_as_long(void **state)
{
    struct rig *rig = *state;
    send_under_way(rig, RIG_OURS);
    is_refused(rig, SYNDROME_RNR | 1, RIG_OURS);
    set_timeout(rig, 0);
    engine_expire(&rig->engine, rig->now, PEER_MOVED, REASON_NONE);
    assert_int_equal(rc_deadline(&rig->engine.rc), rig->now + rnr_wait(1));
    is_silent(rig);
    waits(rig, rnr_wait(1));
    sends(rig, SEND_ONLY, RIG_OURS);
}

static void retries_that_change_begin_anew(void **state)
{
    struct rig *rig = *state;
    uint64_t id = send_under_way(rig, RIG_OURS);
    for (unsigned i = 0; i < 2; i++) {
        waits(rig, RIG_ACK_TIMER);
        sends(rig, SEND_ONLY, RIG_OURS);
    }
    struct engine_settings settings = settings_of(rig);
    settings.retry_count = 1;
    engine_configure(&rig->engine, &settings);
    waits(rig, RIG_ACK_TIMER);
    sends(rig, SEND_ONLY, RIG_OURS);
    engine_configure(&rig->engine, &settings); /* which says nothing new */
    waits(rig, RIG_ACK_TIMER);
    ends(rig, id, IBV_WC_RETRY_EXC_ERR);
}

/* The count begins whole from 7, for ever, as well. */
static void an_rnr_count_that_is_set_begins_whole(void **state)
{
    struct rig *rig = *state;
    rig->engine.rc.settings.rnr_retry = 7;
    uint64_t id = send_under_way(rig, RIG_OURS);
    for (unsigned i = 0; i < 10; i++) {
        is_refused(rig, SYNDROME_RNR | 1, RIG_OURS);
        waits(rig, rnr_wait(1));
        sends(rig, SEND_ONLY, RIG_OURS);
    }
    struct engine_settings settings = settings_of(rig);
    settings.rnr_retry = 1;
    engine_configure(&rig->engine, &settings);
    is_refused(rig, SYNDROME_RNR | 1, RIG_OURS);
    waits(rig, rnr_wait(1));
    sends(rig, SEND_ONLY, RIG_OURS);
    is_refused(rig, SYNDROME_RNR | 1, RIG_OURS);
    ends(rig, id, IBV_WC_RNR_RETRY_EXC_ERR);
}

/* No packet on its way had asked for an ACK, as the larger window would have asked later. */
static void a_smaller_window_stops_no_message(void **state)
{
    enum { PACKETS = 40, FIRST = 20, WINDOW = 8, ASKS = WINDOW / 4 + 1 };
    struct rig *rig = *state;
    rig_make(rig);
    set_window(rig, 1000);
    rig_start(rig);
    uint64_t id = post(rig, .opcode = IBV_WR_SEND, .length = PACKETS * RIG_SEGMENT);
    for (uint32_t i = 0; i < FIRST; i++)
        assert_false(sends(rig, SEND_FIRST + (i > 0), RIG_OURS + i)->ack_requested);
    set_window(rig, WINDOW);
    for (uint32_t i = 0; i < WINDOW; i++)
        assert_int_equal(sends(rig, SEND_FIRST + (i > 0), RIG_OURS + i)->ack_requested, (i + 1) % ASKS == 0);
    is_silent(rig);
    is_acknowledged(rig, RIG_OURS + FIRST - 1);
    for (uint32_t i = FIRST; i < PACKETS; i++) {
        sends(rig, SEND_MIDDLE + (i == PACKETS - 1), RIG_OURS + i);
        if ((i + 1) % ASKS == 0 || i == PACKETS - 1)
            is_acknowledged(rig, RIG_OURS + i);
    }
    ends(rig, id, IBV_WC_SUCCESS);
}

static void by_another_way_all_is_sent_again_at_once(void **state)
{
    struct rig *rig = *state;
    rig->engine.rc.settings.timeout = 0;
    uint64_t first = message_under_way(rig), second = send_under_way(rig, RIG_OURS + 3);
    is_acknowledged(rig, RIG_OURS);
    uint8_t before = rig->engine.rc.requester.retries_left;
    engine_expire(&rig->engine, rig->now, PEER_MOVED, REASON_NONE);
    sends(rig, SEND_MIDDLE, RIG_OURS + 1);
    sends(rig, SEND_LAST, RIG_OURS + 2);
    sends(rig, SEND_ONLY, RIG_OURS + 3);
    is_silent(rig);
    assert_int_equal(rig->engine.rc.requester.retries_left, before);
    assert_int_equal(rig->timeouts, 0);
    is_acknowledged(rig, RIG_OURS + 3);
    ends(rig, first, IBV_WC_SUCCESS);
    ends(rig, second, IBV_WC_SUCCESS);
    engine_expire(&rig->engine, rig->now, PEER_MOVED, REASON_NONE);
    is_silent(rig);
}

/* The packets of READs are the answer's. */
static void work_moves_whose_packets_fit_the_other_way(void **state)
{
    static const struct {
        struct rig_work work;
        bool within, between; /* to larger segments of a host, to smaller ones of a network */
    } rows[] = {
        {{.opcode = IBV_WR_SEND, .length = 100}, true, true},
        {{.opcode = IBV_WR_SEND, .length = 129}, true, false},
        {{.opcode = IBV_WR_SEND, .length = 600}, true, false},
        {{.opcode = IBV_WR_RDMA_READ, .length = 128}, true, true},
        {{.opcode = IBV_WR_RDMA_READ, .length = 256}, true, false},
        {{.opcode = IBV_WR_RDMA_READ, .length = 257}, false, false},
        {{.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .length = 8}, true, true},
        {{.opcode = IBV_WR_RDMA_WRITE, .length = 5000}, false, false}, /* by reference */
    };
    struct rig *rig = *state;
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        rig_make(rig);
        rig->engine.rc.settings.reference_segment = 4096;
        rig->engine.rc.settings.reference_from = 1000;
        rig_start(rig);
        rig_post(rig, rows[i].work);
        assert_true(engine_may_move(&rig->engine, 128, true));
        assert_false(engine_has_begun(&rig->engine));
        while (rig_transmit(rig))
            ;
        assert_true(engine_has_begun(&rig->engine));
        assert_int_equal(engine_may_move(&rig->engine, 1024, false), rows[i].within);
        assert_int_equal(engine_may_move(&rig->engine, 128, true), rows[i].between);
    }
}

/* Repeated work waits to be sent again. */
static void work_that_is_repeated_has_begun(void **state)
{
    struct rig *rig = *state;
    send_under_way(rig, RIG_OURS);
    waits(rig, RIG_ACK_TIMER);
    assert_true(engine_has_begun(&rig->engine));
    sends(rig, SEND_ONLY, RIG_OURS);
    is_acknowledged(rig, RIG_OURS);
    assert_false(engine_has_begun(&rig->engine));
}

static void the_answer_of_a_read_keeps_its_segments(void **state)
{
    struct rig *rig = *state;
    arrives(rig, READ_REQUEST, RIG_THEIRS, .packet = {RETH(0x40, 700)});
    sends(rig, READ_RESPONSE_FIRST, RIG_THEIRS);
    set_segment(rig, 4096);
    assert_int_equal(sends(rig, READ_RESPONSE_MIDDLE, RIG_THEIRS + 1)->payload.length, RIG_SEGMENT);
    assert_memory_equal(rig->carried, rig->memory + 0x40 + RIG_SEGMENT, RIG_SEGMENT);
    assert_int_equal(sends(rig, READ_RESPONSE_LAST, RIG_THEIRS + 2)->payload.length, 700 - 2 * RIG_SEGMENT);
    is_silent(rig);
    arrives(rig, READ_REQUEST, RIG_THEIRS + 1, .packet = {RETH(0x40 + RIG_SEGMENT, 700 - RIG_SEGMENT)});
    sends(rig, READ_RESPONSE_FIRST, RIG_THEIRS + 1);
    assert_memory_equal(rig->carried, rig->memory + 0x40 + RIG_SEGMENT, RIG_SEGMENT);
    sends(rig, READ_RESPONSE_LAST, RIG_THEIRS + 2);
}

TESTS_OF(script, a_timeout_runs_for_what_was_sent_without_one,
                 a_timeout_of_zero_ends_the_timer,
                 no_timer_runs_for_nothing,
                 a_wait_after_an_rnr_nak_stays_as_long,
                 retries_that_change_begin_anew,
                 an_rnr_count_that_is_set_begins_whole,
                 a_smaller_window_stops_no_message,
                 by_another_way_all_is_sent_again_at_once,
                 work_moves_whose_packets_fit_the_other_way,
                 work_that_is_repeated_has_begun,
                 the_answer_of_a_read_keeps_its_segments)
