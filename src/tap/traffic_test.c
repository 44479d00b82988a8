/* Frames of a queue pair on their way from its engine to its link. */
#include "tap/traffic.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "runtime/clock.h"
#include "script/parse.h"
#include "script/rules.h"
#include "tap/delay.h"
#include "wire/wire.h"

struct recorder {
    struct link link;
    bool can_reference;
    unsigned sent, referred;
};

static bool recorder_answers(struct link *link)
{
    return true;
}

static void recorder_end(struct link *link)
{
}

static enum frame_sent recorder_send(struct link *link, const struct frame *frame)
{
    struct recorder *recorder = (struct recorder *)link;
    recorder->sent++;
    recorder->referred += frame->payload.by_reference;
    return FRAME_SENT;
}

static bool recorder_can_reference(struct link *link)
{
    return ((struct recorder *)link)->can_reference;
}

static const struct link_operations operations = {.begin = recorder_answers,
                                                  .end = recorder_end,
                                                  .ready = recorder_answers,
                                                  .send = recorder_send,
                                                  .can_reference = recorder_can_reference};

static struct {
    struct recorder recorder;
    struct schedule schedule;
    struct taps taps;
    struct traffic traffic;
    struct traffic_flow flow;
    struct lock lock;
    struct ibv_qp_attr attr;
    struct device device;
    atomic_bool closed;
} bench;

static void wake_nobody(struct schedule *woken)
{
}

static int begin(void **state)
{
    memset(&bench, 0, sizeof bench);
    bench.recorder = (struct recorder){.link.operations = &operations, .can_reference = true};
    schedule_initialize(&bench.schedule, wake_nobody);
    schedule_initialize_timer(&bench.taps.timer, delay_expired);
    TAILQ_INIT(&bench.taps.delayed);
    bench.taps.schedule = &bench.schedule;
    bench.taps.closed = &bench.closed;
    atomic_store(&bench.taps.faulty, true);
    atomic_store(&bench.traffic.taps, &bench.taps);
    bench.flow = (struct traffic_flow){.attr = &bench.attr,
                                       .traffic = &bench.traffic,
                                       .lock = &bench.lock,
                                       .number = 0x100,
                                       .service = SERVICE_RC,
                                       .device = &bench.device};
    lock_take(&bench.lock);
    return 0;
}

static int end(void **state)
{
    delay_flush(&bench.taps);
    lock_release(&bench.lock);
    traffic_release(&bench.flow);
    rules_clear();
    return 0;
}

static void obey(const char *text)
{
    static struct script more;
    struct script_fault fault;
    memset(&more, 0, sizeof more);
    assert_true(script_parse(text, &more, &fault));
    assert_int_equal(rules_add(&more), 0);
}

static bool send(bool by_reference)
{
    static uint8_t bytes[1 << 17];
    uint8_t headers[WIRE_HEADERS_MAX] = {[0] = 4}; /* SEND Only */
    struct iovec piece = {bytes, by_reference ? sizeof bytes : 8};
    struct frame frame = {.kind = FRAME_ROCE,
                          .headers_length = 12,
                          .headers = headers,
                          .payload = {(uint32_t)piece.iov_len, 1, &piece, by_reference}};
    return traffic_send(&bench.flow, NULL, &bench.recorder.link, &frame);
}

static void what_goes_by_reference_meets_no_rule(void **state)
{
    obey("when packet: drop");
    assert_true(send(false));
    assert_int_equal(bench.recorder.sent, 0);
    assert_true(send(true));
    assert_int_equal(bench.recorder.referred, 1);
}

/* A copy that waits has the bytes themselves, and those are more than a frame holds. */
static void nor_does_it_wait_after_packets_that_do(void **state)
{
    obey("when packet: delay 1s");
    assert_true(send(false));
    assert_int_equal(bench.recorder.sent, 0);
    assert_false(delay_is_quiet(&bench.taps, &bench.recorder.link));
    assert_true(send(true));
    assert_int_equal(bench.recorder.referred, 1);
    assert_int_equal(bench.recorder.sent, 1);
}

static void references_are_lost_only_where_no_packet_waits(void **state)
{
    struct link *link = &bench.recorder.link;
    assert_false(traffic_has_lost_references(&bench.traffic, link));
    bench.recorder.can_reference = false;
    assert_true(traffic_has_lost_references(&bench.traffic, link));
    obey("when packet: delay 1s");
    assert_true(send(false));
    assert_false(traffic_has_lost_references(&bench.traffic, link));
    delay_forget(&bench.taps, link);
    assert_true(traffic_has_lost_references(&bench.traffic, link));
}

/* Frames that the kernel refused, and frames that were longer than the link carries. */
static void frames_that_did_not_leave_have_their_reason(void **state)
{
    struct link *link = &bench.recorder.link;
    link->error = EPERM;
    link->unsent = 2;
    traffic_end_batch(&bench.flow, link);
    link->error = 0;
    link->unsent = 1;
    traffic_end_batch(&bench.flow, link);
    traffic_end_batch(&bench.flow, link);
    assert_int_equal(bench.flow.counts.reasons[counts_place(REASON_PACKET_UNSENT)], 2);
    assert_int_equal(bench.flow.counts.reasons[counts_place(REASON_PACKET_OVERSIZED)], 1);
}

/* A wait is a line of the log, and nothing counts it. */
static void each_reason_that_is_counted_has_a_place_of_its_own(void **state)
{
    unsigned counted = 0;
#define REASON(number, name, sentence)                                                                                 \
    counted += counts_place(number) != 0;                                                                              \
    assert_int_equal(counts_reason(counts_place(number)), counts_place(number) ? (number) : 0);
#include "diag/diag.def"
    assert_int_equal(counted, COUNTS_REASONS - 1);
    assert_int_equal(counts_place(REASON_NO_ANSWER), 0);
    assert_int_equal(counts_place(REASON_PEER_NOT_READY), 0);
    assert_int_not_equal(counts_place(REASON_RECEIVER_NOT_READY), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_goes_by_reference_meets_no_rule, begin, end),
        cmocka_unit_test_setup_teardown(nor_does_it_wait_after_packets_that_do, begin, end),
        cmocka_unit_test_setup_teardown(references_are_lost_only_where_no_packet_waits, begin, end),
        cmocka_unit_test_setup_teardown(frames_that_did_not_leave_have_their_reason, begin, end),
        cmocka_unit_test(each_reason_that_is_counted_has_a_place_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
