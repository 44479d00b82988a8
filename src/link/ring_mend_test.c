/* Rings with something that is not a frame, and frames that the reader would not accept. */
#include "link/ring.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include <unistd.h>

#include "base/testing/group.h"
#include "link/testing/both.h"

/* The frame has as many bytes as its number says. */
static enum frame_sent write_number(struct ring_writer *writer, uint32_t number)
{
    static uint8_t bytes[LINK_SEGMENT];
    struct iovec piece = {bytes, number % (LINK_SEGMENT + 1)};
    struct frame frame = {.kind = FRAME_ROCE,
                          .headers = (const uint8_t *)"",
                          .payload = {(uint32_t)piece.iov_len, piece.iov_len > 0, &piece}};
    return ring_write(writer, &frame, false);
}

/* Longer frames are not frames to the reader if they are written nevertheless. */
static void a_frame_that_is_too_long_is_not_written(void **state)
{
    struct both both;
    struct frame got;
    uint8_t *bytes = calloc(1, LINK_REFERENCE_SEGMENT + 1);
    struct iovec piece = {bytes, LINK_SEGMENT + 1};
    struct frame frame = {.kind = FRAME_ROCE, .headers = (const uint8_t *)"", .payload = {LINK_SEGMENT + 1, 1, &piece}};
    open_both(&both);
    assert_int_equal(ring_write(&both.writer, &frame, false), FRAME_TOO_LONG);
    frame.payload.length = piece.iov_len = LINK_REFERENCE_SEGMENT + 1;
    assert_int_equal(ring_write(&both.writer, &frame, false), FRAME_TOO_LONG);
    assert_int_equal(ring_write(&both.writer, &frame, true), FRAME_TOO_LONG);
    frame.payload.length = piece.iov_len = LINK_REFERENCE_SEGMENT;
    assert_int_equal(ring_write(&both.writer, &frame, true), FRAME_SENT);
    assert_true(ring_read(&both.reader, &got));
    ring_release(&both.reader);
    frame.payload.length = piece.iov_len = LINK_SEGMENT;
    assert_int_equal(ring_write(&both.writer, &frame, false), FRAME_SENT);
    assert_true(ring_read(&both.reader, &got));
    close_both(&both);
    free(bytes);
}

/* Random stores hit the ring again and again, as in a process with a bug. */
static void a_broken_ring_is_mended(void **state)
{
    struct both both;
    struct frame frame;
    uint64_t seed = 44;
    open_both(&both);
    for (unsigned round = 0; round < 500; round++) {
        assert_int_equal(write_number(&both.writer, round), FRAME_SENT);
        for (unsigned i = 0; round % 3 == 0 && i < SIZE; i++)
            both.writer.ring.data[i] = (uint8_t)next_random(&seed);
        ((struct ring_frame *)ring_at(&both.writer.ring, both.reader.head))->kind = 0;
        assert_false(ring_read(&both.reader, &frame));
        assert_true(atomic_load(&both.reader.broken));
        assert_false(ring_is_refused(&both.writer));
        ring_refuse(&both.reader);
        assert_false(ring_waiting(&both.reader));
        assert_true(ring_is_refused(&both.writer));
        assert_false(ring_resume(&both.reader));
        write_number(&both.writer, round); /* is lost, too */
        ring_mend(&both.writer);
        assert_false(ring_is_refused(&both.writer));
        assert_int_equal(write_number(&both.writer, round + 1), FRAME_SENT);
        assert_true(ring_resume(&both.reader));
        ring_publish(&both.reader);
        assert_false(ring_consumed(&both.writer));
        assert_true(ring_read(&both.reader, &frame));
        assert_int_equal(frame.payload.length, (round + 1) % (LINK_SEGMENT + 1));
        ring_release(&both.reader);
        assert_false(ring_read(&both.reader, &frame));
        ring_publish(&both.reader);
        assert_true(ring_consumed(&both.writer));
    }
    close_both(&both);
}

static void a_reader_goes_on_only_where_a_frame_can_begin(void **state)
{
    struct both both;
    open_both(&both);
    atomic_store(&both.reader.broken, true);
    ring_refuse(&both.reader);
    ring_mend(&both.writer);
    atomic_fetch_add(&both.writer.ring.shared->mended_at, 8);
    assert_false(ring_resume(&both.reader));
    assert_false(ring_waiting(&both.reader));
    atomic_fetch_sub(&both.writer.ring.shared->mended_at, 8);
    assert_true(ring_resume(&both.reader));
    assert_false(ring_resume(&both.reader));
    close_both(&both);
}

/* A writer that found no room before is woken by the place where the reader continues. */
static void mending_makes_room(void **state)
{
    struct both both;
    open_both(&both);
    while (write_number(&both.writer, LINK_SEGMENT) == FRAME_SENT)
        ;
    assert_false(ring_ask(&both.writer));
    atomic_store(&both.reader.broken, true);
    ring_refuse(&both.reader);
    ring_mend(&both.writer);
    assert_true(ring_resume(&both.reader));
    assert_true(ring_publish(&both.reader));
    assert_true(ring_ready(&both.writer));
    close_both(&both);
}

TESTS(a_frame_that_is_too_long_is_not_written,
      a_broken_ring_is_mended,
      a_reader_goes_on_only_where_a_frame_can_begin,
      mending_makes_room)
