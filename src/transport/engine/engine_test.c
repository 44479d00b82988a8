#include "transport/testing/script.h"

/* True: it counts as a time-out. */
static bool expires(struct rig *rig, nanos time, enum silent_peer peer, enum reason silence)
{
    unsigned before = rig->timeouts;
    rig->now += time;
    engine_expire(&rig->engine, rig->now, peer, silence);
    rig->told = engine_watch(&rig->engine);
    return rig->timeouts != before;
}

static void silence_for_all_of_the_ack_timer_counts_as_a_time_out(void **state)
{
    struct rig *rig = *state;
    post(rig, .opcode = IBV_WR_SEND, .length = 8);
    sends(rig, SEND_ONLY, RIG_OURS);
    assert_false(expires(rig, RIG_ACK_TIMER - 1, PEER_SILENT, REASON_NONE));
    is_silent(rig);
    assert_true(expires(rig, 1, PEER_SILENT, REASON_NONE));
    sends(rig, SEND_ONLY, RIG_OURS);
}

static void a_slow_peer_costs_no_retry(void **state)
{
    struct rig *rig = *state;
    post(rig, .opcode = IBV_WR_SEND, .length = 8);
    sends(rig, SEND_ONLY, RIG_OURS);
    for (unsigned i = 0; i < 10; i++)
        assert_false(expires(rig, RIG_ACK_TIMER, PEER_SLOW, REASON_NONE));
    is_silent(rig);
    assert_int_equal(rig->told, rig->now + RIG_ACK_TIMER);
    ends_nothing(rig);
}

static void a_wait_for_a_receive_counts_as_no_time_out(void **state)
{
    struct rig *rig = *state;
    post(rig, .opcode = IBV_WR_SEND, .length = 8);
    sends(rig, SEND_ONLY, RIG_OURS);
    is_refused(rig, SYNDROME_RNR, RIG_OURS);
    assert_true(engine_waits_for_receive(&rig->engine));
    assert_false(expires(rig, NANOS_SECOND, PEER_SILENT, REASON_NONE));
    sends(rig, SEND_ONLY, RIG_OURS);
}

/* The first asks for an ACK, as its PSN is a multiple of four. */
static void a_peer_that_took_all_is_silent_for_what_asked(void **state)
{
    struct rig *rig = *state;
    struct engine_settings settings = *engine_settings_of(&rig->engine);
    settings.ack_mask = 3;
    engine_configure(&rig->engine, &settings);
    uint64_t asks = post(rig, .opcode = IBV_WR_SEND, .length = 8);
    uint64_t does_not = post(rig, .opcode = IBV_WR_SEND, .length = 8);
    sends(rig, SEND_ONLY, RIG_OURS);
    sends(rig, SEND_ONLY, RIG_OURS + 1);
    assert_true(expires(rig, RIG_ACK_TIMER, PEER_TOOK_ALL, REASON_NONE));
    ends_nothing(rig);
    sends(rig, SEND_ONLY, RIG_OURS);
    is_acknowledged(rig, RIG_OURS);
    ends(rig, asks, IBV_WC_SUCCESS);
    sends(rig, SEND_ONLY, RIG_OURS + 1);
    is_acknowledged(rig, RIG_OURS + 1);
    ends(rig, does_not, IBV_WC_SUCCESS);
    uint64_t third = post(rig, .opcode = IBV_WR_SEND, .length = 8);
    sends(rig, SEND_ONLY, RIG_OURS + 2);
    assert_false(expires(rig, RIG_ACK_TIMER, PEER_TOOK_ALL, REASON_NONE));
    ends(rig, third, IBV_WC_SUCCESS);
}

static void the_owner_says_why_nothing_came(void **state)
{
    struct rig *rig = *state;
    uint64_t id = post(rig, .opcode = IBV_WR_SEND, .length = 8);
    sends(rig, SEND_ONLY, RIG_OURS);
    for (unsigned i = 0; i < 3; i++) {
        assert_true(expires(rig, RIG_ACK_TIMER, PEER_SILENT, REASON_PEER_GONE));
        while (rig_transmit(rig))
            ;
    }
    assert_int_equal(rig->ends[rig->saw_end].reason, REASON_PEER_GONE);
    ends(rig, id, IBV_WC_RETRY_EXC_ERR);
}

static void a_notification_is_a_packet_that_nobody_drops(void **state)
{
    struct rig *rig = *state;
    const struct packet notification = {.opcode = SERVICE_CNP << 5 | 1, .pkey = 0xffff};
    engine_receive(&rig->engine, &notification, rig->now);
    assert_int_equal(rig->drops, 0);
    is_silent(rig);
}

/* The common state of all services is in the same place as RC's. */
static void every_service_has_settings_and_a_queue(void **state)
{
    struct rig *rig = *state;
    const bool failed = rig->service != SERVICE_RC; /* RC has no SQE */
    assert_int_equal(engine_settings_of(&rig->engine)->pkey, 0xffff);
    assert_true(engine_is_receiving(&rig->engine) && engine_is_transmitting(&rig->engine));
    assert_int_equal(engine_queue(&rig->engine)->capacity, RIG_QUEUE);
    uint64_t id = post(rig, .opcode = IBV_WR_RDMA_READ, .length = 1 << 21);
    assert_true(engine_may_have_output(&rig->engine));
    assert_false(rig_transmit(rig) && failed);
    assert_int_equal(engine_has_send_error(&rig->engine), failed);
    if (failed)
        ends(rig, id, IBV_WC_LOC_QP_OP_ERR);
    engine_resume(&rig->engine);
    assert_false(engine_has_send_error(&rig->engine));
    engine_reset(&rig->engine);
    assert_int_equal(engine_settings_of(&rig->engine)->pkey, 0xffff);
    assert_false(engine_is_receiving(&rig->engine) || engine_is_transmitting(&rig->engine));
    assert_int_equal(engine_queue(&rig->engine)->tail, 0);
}

static void what_is_posted_after_a_flush_is_flushed(void **state)
{
    struct rig *rig = *state;
    engine_flush(&rig->engine);
    assert_true(engine_has_failed(&rig->engine));
    ends(rig, post(rig, .opcode = IBV_WR_SEND, .length = 8), IBV_WC_WR_FLUSH_ERR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        script(silence_for_all_of_the_ack_timer_counts_as_a_time_out),
        script(a_slow_peer_costs_no_retry),
        script(a_wait_for_a_receive_counts_as_no_time_out),
        script(a_peer_that_took_all_is_silent_for_what_asked),
        script(the_owner_says_why_nothing_came),
        script(a_notification_is_a_packet_that_nobody_drops),
        script(every_service_has_settings_and_a_queue),
        uc_script(every_service_has_settings_and_a_queue),
        ud_script(every_service_has_settings_and_a_queue),
        script(what_is_posted_after_a_flush_is_flushed),
        uc_script(what_is_posted_after_a_flush_is_flushed),
        ud_script(what_is_posted_after_a_flush_is_flushed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
