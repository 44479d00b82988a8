/* Frames that a fault holds back, over a link that writes down what it carries. */
#include "tap/delay.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/testing/group.h"

enum { SENT_MOST = 16, SECOND_STREAM = 2 };

struct recorder {
    struct link link;
    bool full;
    unsigned count;
    char sent[SENT_MOST]; /* the first header byte of each */
};

static bool recorder_begin(struct link *link)
{
    return false;
}

static void recorder_end(struct link *link)
{
}

static bool recorder_ready(struct link *link)
{
    return !((struct recorder *)link)->full;
}

static enum frame_sent recorder_send(struct link *link, const struct frame *frame)
{
    struct recorder *recorder = (struct recorder *)link;
    assert_false(recorder->full);
    assert_true(recorder->count < SENT_MOST - 1);
    recorder->sent[recorder->count++] = (char)frame->headers[0];
    return FRAME_SENT;
}

static const struct link_operations operations = {
    .begin = recorder_begin, .end = recorder_end, .ready = recorder_ready, .send = recorder_send};

static atomic_bool closed;
static struct schedule schedule;

static void wake_nobody(struct schedule *woken)
{
}

static struct taps *begin(struct recorder *recorder)
{
    static struct taps taps;
    memset(&taps, 0, sizeof taps);
    schedule_initialize(&schedule, wake_nobody);
    schedule_initialize_timer(&taps.timer, delay_expired);
    TAILQ_INIT(&taps.delayed);
    taps.schedule = &schedule;
    taps.closed = &closed;
    *recorder = (struct recorder){.link.operations = &operations};
    return &taps;
}

/* Keeps a frame as if it had been decided after `releases` releases. */
static void keep_since(struct taps *taps, struct recorder *recorder, uint64_t stream, char name, nanos due,
                       uint64_t behind, uint32_t releases)
{
    uint8_t header = (uint8_t)name;
    struct delay_way way = {.taps = taps, .link = &recorder->link, .stream = stream, .releases = releases};
    assert_true(
        delay_keep(&way, &(struct frame){.kind = FRAME_ROCE, .headers = &header, .headers_length = 1}, due, behind));
}

static void keep(struct taps *taps, struct recorder *recorder, uint64_t stream, char name, nanos due, uint64_t behind)
{
    keep_since(taps, recorder, stream, name, due, behind, atomic_load(&taps->releases));
}

static void frames_leave_in_the_order_of_their_times(void **state)
{
    struct recorder recorder;
    struct taps *taps = begin(&recorder);
    keep(taps, &recorder, 1, 'c', 30, 0);
    keep(taps, &recorder, 1, 'a', 10, 0);
    keep(taps, &recorder, 1, 'b', 10, 0);
    assert_int_equal(atomic_load(&taps->timer.at), 10);
    delay_expired(&taps->timer.timer, 9);
    assert_string_equal(recorder.sent, "");
    delay_expired(&taps->timer.timer, 29);
    assert_string_equal(recorder.sent, "ab");
    delay_expired(&taps->timer.timer, 30);
    assert_string_equal(recorder.sent, "abc");
}

static void a_frame_leaves_when_enough_of_its_stream_have_overtaken_it(void **state)
{
    struct recorder recorder;
    struct taps *taps = begin(&recorder);
    struct delay_way own = {.taps = taps, .link = &recorder.link, .stream = 1}, other = own;
    other.stream = SECOND_STREAM;
    keep(taps, &recorder, 1, 'a', 1000, 5);
    delay_overtaken(&own, 4, 0);
    delay_overtaken(&other, 9, 0);
    assert_string_equal(recorder.sent, "");
    delay_overtaken(&own, 5, 0);
    assert_string_equal(recorder.sent, "a");
    delay_expired(&taps->timer.timer, 1000);
    assert_string_equal(recorder.sent, "a");
}

/* A frame that also has a delay leaves after those that overtake it, and before the next. */
static void what_is_overtaken_by_a_frame_that_waits_leaves_behind_it(void **state)
{
    struct recorder recorder;
    struct taps *taps = begin(&recorder);
    struct delay_way own = {.taps = taps, .link = &recorder.link, .stream = 1};
    keep(taps, &recorder, 1, 'a', 1100, 2);
    keep(taps, &recorder, 1, 'b', 120, 0);
    delay_overtaken(&own, 2, 120);
    keep(taps, &recorder, 1, 'c', 120, 0);
    delay_overtaken(&own, 3, 120);
    delay_expired(&taps->timer.timer, 119);
    assert_string_equal(recorder.sent, "");
    delay_expired(&taps->timer.timer, 120);
    assert_string_equal(recorder.sent, "bac");
}

static void what_is_held_leaves_when_it_is_released(void **state)
{
    struct recorder recorder;
    struct taps *taps = begin(&recorder);
    delay_release_held(NULL);
    keep(taps, &recorder, 1, 'b', DELAY_HELD, 0);
    keep(taps, &recorder, SECOND_STREAM, 'c', DELAY_HELD, 0);
    keep(taps, &recorder, 1, 'a', 10, 0);
    delay_expired(&taps->timer.timer, NANOS_SECOND);
    assert_string_equal(recorder.sent, "a");
    delay_release_held(taps);
    assert_int_equal(atomic_load(&taps->releases), 1);
    delay_expired(&taps->timer.timer, NANOS_SECOND);
    assert_string_equal(recorder.sent, "abc");
}

/* A thread has met the rule that holds, and another has taken it back and released all. */
static void what_is_held_too_late_leaves_at_once(void **state)
{
    struct recorder recorder;
    struct taps *taps = begin(&recorder);
    uint32_t before = atomic_load(&taps->releases);
    delay_release_held(taps);
    keep_since(taps, &recorder, 1, 'a', DELAY_HELD, 0, before);
    keep(taps, &recorder, 1, 'b', DELAY_HELD, 0);
    delay_expired(&taps->timer.timer, 1);
    assert_string_equal(recorder.sent, "a");
    delay_flush(taps);
}

/* A frame that finds no room waits, and no frame of its link overtakes it by that. */
static void without_room_the_order_stays(void **state)
{
    struct recorder recorder;
    struct taps *taps = begin(&recorder);
    keep(taps, &recorder, 1, 'a', 10, 0);
    keep(taps, &recorder, 1, 'b', 20, 0);
    recorder.full = true;
    delay_expired(&taps->timer.timer, 20);
    assert_string_equal(recorder.sent, "");
    recorder.full = false;
    delay_expired(&taps->timer.timer, NANOS_SECOND);
    assert_string_equal(recorder.sent, "ab");
}

static void what_waits_for_a_link_leaves_before_it_is_closed(void **state)
{
    struct recorder recorder, other = {.link.operations = &operations};
    struct taps *taps = begin(&recorder);
    keep(taps, &recorder, 1, 'a', 1000, 0);
    keep(taps, &other, 1, 'x', 1000, 0);
    delay_forget(taps, &recorder.link);
    assert_string_equal(recorder.sent, "a");
    assert_string_equal(other.sent, "");
    delay_flush(taps);
    assert_string_equal(other.sent, "x");
    assert_int_equal(taps->delayed_bytes, 0);
}

TESTS(frames_leave_in_the_order_of_their_times,
      a_frame_leaves_when_enough_of_its_stream_have_overtaken_it,
      what_is_overtaken_by_a_frame_that_waits_leaves_behind_it,
      what_is_held_leaves_when_it_is_released,
      what_is_held_too_late_leaves_at_once,
      without_room_the_order_stays,
      what_waits_for_a_link_leaves_before_it_is_closed)
