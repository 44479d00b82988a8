#include "link/ring.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/group.h"
#include "base/testing/patience.h"
#include "link/guard.h"
#include "link/testing/both.h"

enum { MESSAGES = 60000 };

/* The message with this number: its lengths and bytes follow from it. */
struct message {
    uint8_t headers[FRAME_HEADERS_MAX], bytes[LINK_SEGMENT];
    uint16_t headers_length;
    uint32_t length, along;
};

static void make_message(unsigned number, struct message *message)
{
    uint64_t seed = number * 7919u + 1;
    message->headers_length = (uint16_t)(next_random(&seed) % (FRAME_HEADERS_MAX + 1));
    message->length = next_random(&seed) % 4 ? next_random(&seed) % 300 : next_random(&seed) % (LINK_SEGMENT + 1);
    message->along = next_random(&seed) % 2 ? 0 : number + 1;
    uint8_t start = (uint8_t)next_random(&seed);
    for (unsigned i = 0; i < message->headers_length; i++)
        message->headers[i] = (uint8_t)(start + i);
    for (unsigned i = 0; i < message->length; i++)
        message->bytes[i] = (uint8_t)(start + i * 3 + (i >> 8));
}

/* Writes a message, in one piece or in two. */
static bool write_message(struct ring_writer *writer, const struct message *message)
{
    uint32_t first = message->length % 2 ? message->length : message->length / 3, second = message->length - first;
    struct iovec pieces[2] = {{(void *)message->bytes, first}, {(void *)(message->bytes + first), second}};
    struct payload payload = {
        .length = message->length, .count = (first > 0) + (second > 0), .pieces = first ? pieces : pieces + 1};
    struct frame frame = {FRAME_ROCE, message->headers_length, message->headers, payload, message->along, 0};
    return ring_write(writer, &frame, false);
}

static bool is_message(const struct frame *frame, const struct message *message)
{
    return frame->kind == FRAME_ROCE && frame->headers_length == message->headers_length &&
           !memcmp(frame->headers, message->headers, message->headers_length) &&
           frame->payload.length == message->length && frame->along == message->along &&
           (!message->length || !memcmp(frame->payload.pieces->iov_base, message->bytes, message->length));
}

static void write_all(struct ring_writer *writer)
{
    struct message message;
    for (unsigned i = 0; i < MESSAGES; i++) {
        make_message(i, &message);
        PATIENTLY_WHILE (!write_message(writer, &message))
            sched_yield();
    }
    ring_write_end(writer);
}

static void *write_all_in_a_thread(void *writer)
{
    write_all(writer);
    return NULL;
}

/* Returns how many arrived correctly. */
static unsigned read_all(struct ring_reader *reader)
{
    struct message message;
    struct frame frame;
    unsigned good = 0, batch = 0;
    for (unsigned i = 0; !atomic_load(&reader->ended) && !atomic_load(&reader->broken);) {
        if (!ring_read(reader, &frame)) {
            sched_yield();
        } else {
            make_message(i++, &message);
            good += is_message(&frame, &message);
            ring_release(reader);
        }
        if (++batch % 5 == 0)
            ring_publish(reader);
    }
    return good;
}

static void a_reader_in_another_thread_gets_what_was_written(void **state)
{
    struct both both;
    pthread_t thread;
    open_both(&both);
    assert_int_equal(pthread_create(&thread, NULL, write_all_in_a_thread, &both.writer), 0);
    assert_int_equal(read_all(&both.reader), MESSAGES);
    pthread_join(thread, NULL);
    assert_false(atomic_load(&both.reader.broken));
    close_both(&both);
}

static void a_reader_in_another_process_gets_what_was_written(void **state)
{
    struct both both;
    int status;
    open_both(&both);
    pid_t child = fork();
    if (!child) {
        write_all(&both.writer);
        _exit(0);
    }
    assert_int_equal(read_all(&both.reader), MESSAGES);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
    close_both(&both);
}

/* The reader must not take the bytes of the round before at the next place for a frame. */
static void a_ring_that_was_emptied_looks_empty(void **state)
{
    struct both both;
    struct message message;
    struct frame frame;
    open_both(&both);
    for (unsigned i = 0; i < MESSAGES / 4; i++) {
        make_message(i, &message);
        assert_true(write_message(&both.writer, &message));
        assert_true(ring_read(&both.reader, &frame));
        assert_true(is_message(&frame, &message));
        ring_release(&both.reader);
        ring_publish(&both.reader);
        assert_false(ring_waiting(&both.reader));
        assert_false(ring_read(&both.reader, &frame));
    }
    assert_false(atomic_load(&both.reader.broken));
    close_both(&both);
}

static void a_frame_of_48_header_bytes_or_40_and_8_takes_one_line(void **state)
{
    assert_int_equal(ring_bytes_frame(40, 8), RING_LINE);
    assert_int_equal(ring_bytes_frame(48, 0), RING_LINE);
    assert_int_equal(ring_bytes_frame(48, 1), 2 * RING_LINE);
}

static unsigned fill_up(struct ring_writer *writer, const struct message *message)
{
    unsigned count = 0;
    while (write_message(writer, message))
        count++;
    return count;
}

static void a_full_ring_asks_to_be_told_of_room(void **state)
{
    struct both both;
    struct message message;
    struct frame frame;
    open_both(&both);
    make_message(7, &message);
    message.length = 1000;
    assert_true(ring_ready(&both.writer));
    assert_false(ring_got_room(&both.writer) && fill_up(&both.writer, &message) == 0);
    assert_false(ring_ready(&both.writer));
    assert_false(ring_ask(&both.writer));
    assert_false(ring_got_room(&both.writer));
    bool told = false;
    while (ring_read(&both.reader, &frame)) {
        ring_release(&both.reader);
        told |= ring_publish(&both.reader);
        if (told)
            assert_true(ring_ready(&both.writer));
    }
    assert_true(told);
    assert_false(ring_publish(&both.reader)); /* once is enough */
    assert_true(ring_consumed(&both.writer));
    close_both(&both);
}

static void the_end_fits_into_a_full_ring(void **state)
{
    struct both both;
    struct message message = {.length = 8};
    struct frame frame;
    open_both(&both);
    unsigned count = fill_up(&both.writer, &message);
    ring_write_end(&both.writer);
    for (unsigned i = 0; i < count; i++, ring_release(&both.reader))
        assert_true(ring_read(&both.reader, &frame));
    assert_false(ring_read(&both.reader, &frame));
    assert_true(atomic_load(&both.reader.ended));
    close_both(&both);
}

static bool refuse_to_pull(const struct payload *payload, uint32_t offset, const struct iovec *to, uint32_t count)
{
    memset(to->iov_base, 0xff, to->iov_len);
    return false;
}

static void a_payload_that_fails_to_arrive_leaves_no_trace(void **state)
{
    struct both both;
    struct message message;
    struct frame frame = {.kind = FRAME_ROCE,
                          .headers = (const uint8_t *)"",
                          .payload = {.length = LINK_SEGMENT, .pull = refuse_to_pull}};
    open_both(&both);
    for (unsigned i = 0; i < 100; i++) {
        make_message(i, &message);
        assert_true(ring_write(&both.writer, &frame, false));
        assert_true(write_message(&both.writer, &message));
        struct frame got;
        assert_true(ring_read(&both.reader, &got));
        assert_true(is_message(&got, &message));
        ring_release(&both.reader);
        ring_publish(&both.reader);
        assert_false(ring_read(&both.reader, &got));
    }
    close_both(&both);
}

static void a_head_that_cannot_be_stops_the_writer(void **state)
{
    struct both both;
    struct message message = {.length = 8};
    open_both(&both);
    atomic_store(&both.reader.ring.shared->head, 1u << 30);
    unsigned count = fill_up(&both.writer, &message);
    assert_false(ring_ready(&both.writer));
    struct frame frame;
    for (unsigned i = 0; i < count; i++, ring_release(&both.reader))
        assert_true(ring_read(&both.reader, &frame));
    ring_publish(&both.reader); /* as it is published anew, nothing is lost */
    assert_true(ring_ready(&both.writer));
    close_both(&both);
}

/* Reads until the ring is empty or broken, touching every byte of each frame; at most `most` frames. */
static void read_hostile(struct ring_reader *reader, unsigned most)
{
    struct frame frame;
    unsigned sum = 0;
    while (most-- && ring_read(reader, &frame)) {
        for (unsigned i = 0; i < frame.headers_length; i++)
            sum += frame.headers[i];
        for (unsigned i = 0; !reader->reference && frame.payload.length && i < frame.payload.pieces->iov_len; i++)
            sum += ((uint8_t *)frame.payload.pieces->iov_base)[i];
        ring_release(reader);
        ring_publish(reader);
    }
    __asm__ volatile("" ::"r"(sum));
}

static void random_bytes_do_no_harm(void **state)
{
    struct both both;
    uint64_t seed = 42;
    for (unsigned round = 0; round < 300; round++) {
        open_both(&both);
        for (unsigned i = 0; i < SIZE; i++)
            both.writer.ring.data[i] = (uint8_t)next_random(&seed);
        read_hostile(&both.reader, 1000);
        assert_true(atomic_load(&both.reader.broken));
        close_both(&both);
    }
}

/* Heads that are nearly right get further into the reader than noise does. */
static void mutated_heads_do_no_harm(void **state)
{
    struct both both;
    uint64_t seed = 43;
    unsigned broken = 0;
    for (unsigned round = 0; round < 3000; round++) {
        struct message message;
        open_both(&both);
        for (unsigned i = 0; i < 4; i++) {
            make_message(round + i, &message);
            write_message(&both.writer, &message);
        }
        both.writer.ring.data[next_random(&seed) % 24] ^= (uint8_t)(1u << next_random(&seed) % 8);
        read_hostile(&both.reader, 1000);
        broken += atomic_load(&both.reader.broken);
        close_both(&both);
    }
    assert_true(broken > 1200); /* all except hits of the headers or of frame->along */
}

static void references_that_do_not_add_up_break_the_ring(void **state)
{
    struct both both;
    struct frame got;
    struct iovec pieces[2] = {{&both, 5000}, {&both, 5000}};
    struct frame frame = {.kind = FRAME_ROCE, .headers = (const uint8_t *)"", .payload = {9000, 2, pieces, true, 0, 0}};
    open_both(&both);
    assert_true(ring_write(&both.writer, &frame, true));
    assert_false(ring_read(&both.reader, &got));
    assert_true(atomic_load(&both.reader.broken));
    close_both(&both);
}

/* Found by ring_fuzz.c: an end was checked as if it had no payload. */
static void an_end_that_has_pieces_breaks_the_ring(void **state)
{
    struct both both;
    struct frame got;
    open_both(&both);
    struct ring_frame *head = (struct ring_frame *)both.writer.ring.data;
    struct ring_piece *pieces = (struct ring_piece *)(both.writer.ring.data + ring_reference_offset(0));
    for (unsigned i = 0; i < 2 * PAYLOAD_PIECES_MAX; i++)
        pieces[i] = (struct ring_piece){0x1234567890, 1};
    head->flags = RING_END | RING_REFERENCE;
    head->payload_length = head->count = 2 * PAYLOAD_PIECES_MAX;
    atomic_store(&head->commit, RING_LINE);
    uint32_t epoch = both.reader.epoch;
    assert_false(ring_read(&both.reader, &got));
    assert_true(atomic_load(&both.reader.broken));
    assert_false(atomic_load(&both.reader.ended));
    assert_int_equal(both.reader.epoch, epoch); /* no list was taken */
    for (unsigned i = 0; i < PAYLOAD_PIECES_MAX; i++)
        assert_null(both.reader.pieces[i].iov_base);
    close_both(&both);
}

static void a_revoked_reference_does_not_hold(void **state)
{
    struct both both;
    struct frame got;
    struct iovec piece = {&both, 9000};
    struct frame frame = {.kind = FRAME_ROCE, .headers = (const uint8_t *)"", .payload = {9000, 1, &piece, true, 0, 0}};
    open_both(&both);
    for (unsigned i = 0; i < 3; i++) {
        assert_true(ring_write(&both.writer, &frame, true));
        assert_true(ring_read(&both.reader, &got));
        assert_ptr_equal(got.payload.pieces->iov_base, &both);
        assert_true(ring_reference_holds(&both.reader));
        ring_revoke(&both.writer);
        assert_false(ring_reference_holds(&both.reader));
        ring_release(&both.reader);
    }
    close_both(&both);
}

/* However short it is. */
static void a_reference_stays_one(void **state)
{
    struct both both;
    struct frame got;
    struct iovec piece = {&both, 8};
    struct frame frame = {.kind = FRAME_ROCE, .headers = (const uint8_t *)"", .payload = {8, 1, &piece, true, 0, 0}};
    open_both(&both);
    assert_true(ring_write(&both.writer, &frame, true));
    assert_true(ring_read(&both.reader, &got));
    assert_true(both.reader.reference);
    assert_ptr_equal(got.payload.pieces->iov_base, &both);
    close_both(&both);
}

/* -- the bytes that are sent with a reference */

/* A reference to these bytes, in pieces of `piece` bytes. */
static bool refer_to(struct both *both, uint8_t *bytes, uint32_t length, uint32_t piece, uint16_t headers_length)
{
    static const uint8_t headers[FRAME_HEADERS_MAX];
    struct iovec pieces[PAYLOAD_PIECES_MAX];
    struct frame frame = {.kind = FRAME_ROCE, .headers = headers, .headers_length = headers_length};
    uint32_t count = 0;
    for (uint32_t at = 0; at < length; at += piece)
        pieces[count++] = (struct iovec){bytes + at, length - at < piece ? length - at : piece};
    frame.payload = (struct payload){.length = length, .count = count, .pieces = pieces, .by_reference = true};
    return ring_write(&both->writer, &frame, true) == FRAME_SENT;
}

static void has_prefix(const struct ring_reader *reader, const uint8_t *expected)
{
    for (uint32_t offset = 0; offset <= RING_PREFIX; offset++)
        for (uint32_t first = 0; first <= RING_PREFIX + 2; first++) {
            uint8_t got[2 * RING_PREFIX + 2];
            struct iovec to[2] = {{got, first}, {got + first, RING_PREFIX}};
            uint32_t left = RING_PREFIX - offset;
            memset(got, 0xee, sizeof got);
            assert_int_equal(ring_prefix_covers(reader, offset, to, 1), first <= left);
            assert_int_equal(ring_prefix_covers(reader, offset, to, 2), !first && !offset);
            assert_true(ring_store_prefix(reader, offset, to, 2));
            assert_memory_equal(got, expected + offset, left);
            for (uint32_t i = left; i < sizeof got; i++)
                assert_int_equal(got[i], 0xee);
        }
}

/* The prefix has the bytes of the time of writing, in whatever pieces; the writer's memory may change before a read. */
static void a_reference_brings_the_first_bytes_of_then(void **state)
{
    struct both both;
    struct frame got;
    uint8_t bytes[100], then[RING_PREFIX];
    open_both(&both);
    for (unsigned i = 0; both.writer.tail < 3 * SIZE; i++) {
        for (unsigned at = 0; at < sizeof bytes; at++)
            bytes[at] = (uint8_t)(i * 7 + at);
        memcpy(then, bytes, sizeof then);
        assert_true(refer_to(&both, bytes, sizeof bytes, 4 + i % 97, (uint16_t)(i % (FRAME_HEADERS_MAX + 1))));
        memset(bytes, 0xdd, sizeof bytes);
        assert_true(ring_read(&both.reader, &got));
        assert_int_equal(got.payload.length, sizeof bytes);
        assert_int_equal(got.payload.count, (sizeof bytes - 1) / (4 + i % 97) + 1);
        assert_ptr_equal(got.payload.pieces->iov_base, bytes);
        assert_true(ring_reference_holds(&both.reader));
        has_prefix(&both.reader, then);
        ring_release(&both.reader);
        ring_publish(&both.reader);
    }
    close_both(&both);
}

/* The most frequent one is a SEND of one piece. */
static void a_reference_to_one_piece_takes_one_line(void **state)
{
    assert_int_equal(ring_reference_frame(12, 1), RING_LINE);
    assert_true(ring_reference_frame(FRAME_HEADERS_MAX, PAYLOAD_PIECES_MAX) <= RING_FRAME_MAX);
}

static void has_no_prefix(const struct ring_reader *reader)
{
    uint8_t byte = 0xee;
    struct iovec to = {&byte, 1};
    assert_false(ring_prefix_covers(reader, 0, &to, 1));
    assert_true(ring_store_prefix(reader, 0, &to, 1));
    assert_int_equal(byte, 0xee);
}

/* Memory that the processor does not reach is the kernel's affair, and a payload may be too short. */
static void a_reference_without_its_first_bytes_is_one(void **state)
{
    struct both both;
    struct frame got;
    uint8_t *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED && !mprotect(pages + 4096, 4096, PROT_NONE));
    guard_start();
    open_both(&both);
    bool opened = guard_begin_now();
    for (uint32_t before = 0; before < RING_PREFIX; before++) { /* the page before has `before` bytes */
        assert_true(refer_to(&both, pages + 4096 - before, 4000, 4000, 12));
        assert_true(ring_read(&both.reader, &got));
        assert_int_equal(got.payload.length, 4000);
        has_no_prefix(&both.reader);
        ring_release(&both.reader);
    }
    guard_end(opened);
    assert_true(refer_to(&both, pages, RING_PREFIX - 1, RING_PREFIX, 12));
    assert_true(ring_read(&both.reader, &got));
    has_no_prefix(&both.reader);
    ring_release(&both.reader);
    assert_true(refer_to(&both, pages, RING_PREFIX, RING_PREFIX, 12));
    assert_true(ring_read(&both.reader, &got));
    has_prefix(&both.reader, pages);
    close_both(&both);
    munmap(pages, 8192);
}

static void breaks(uint8_t flags, uint32_t payload_length)
{
    struct both both;
    struct frame got;
    uint8_t bytes[100] = {0};
    open_both(&both);
    assert_true(refer_to(&both, bytes, payload_length, sizeof bytes, 12));
    ((struct ring_frame *)both.writer.ring.data)->flags = flags;
    assert_false(ring_read(&both.reader, &got));
    assert_true(atomic_load(&both.reader.broken));
    assert_false(atomic_load(&both.reader.ended));
    close_both(&both);
}

static void a_prefix_of_no_reference_or_of_a_shorter_payload_breaks_the_ring(void **state)
{
    breaks(RING_PREFIXED, 100);
    breaks(RING_PREFIXED | RING_END, 100);
    breaks(RING_PREFIXED | RING_REFERENCE | RING_END, 100);
    breaks(RING_PREFIXED | RING_REFERENCE | 8, 100);
    breaks(RING_PREFIXED | RING_REFERENCE, RING_PREFIX - 1);
}

static bool is_mapped(uint8_t *page)
{
    unsigned char resident;
    return !mincore(page, 4096, &resident);
}

static void unmapping_gives_all_of_a_ring_back(void **state)
{
    struct both both;
    open_both(&both);
    uint8_t *base = (uint8_t *)both.reader.ring.shared;
    assert_true(is_mapped(base) && is_mapped(base + RING_DATA + 2 * SIZE - 4096));
    close_both(&both);
    assert_false(is_mapped(base) || is_mapped(base + RING_DATA) || is_mapped(base + RING_DATA + 2 * SIZE - 4096));
}

static int map_result(int memory)
{
    struct ring ring;
    int error = ring_map(&ring, memory);
    if (!error)
        ring_unmap(&ring);
    return error;
}

/* A memfd like a ring's, but for the seals. */
static int make_unsealed(bool with_content)
{
    struct ring_shared shared = {.magic = RING_MAGIC, .layout = RING_LAYOUT, .size = SIZE};
    int memory = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(ftruncate(memory, RING_DATA + SIZE), 0);
    if (with_content)
        assert_int_equal(pwrite(memory, &shared, sizeof shared, 0), sizeof shared);
    return memory;
}

static void memory_that_could_shrink_is_refused(void **state)
{
    int memory = make_unsealed(true);
    assert_int_equal(map_result(memory), EINVAL);
    assert_int_equal(fcntl(memory, F_ADD_SEALS, F_SEAL_GROW), 0);
    assert_int_equal(map_result(memory), EINVAL);
    assert_int_equal(fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    assert_int_equal(map_result(memory), 0);
    close(memory);
}

static void memory_without_the_first_words_of_a_ring_is_refused(void **state)
{
    int memory = make_unsealed(false);
    assert_int_equal(fcntl(memory, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK), 0);
    assert_int_equal(map_result(memory), EINVAL);
    close(memory);
}

static void memory_of_another_size_is_refused(void **state)
{
    const off_t sizes[] = {0, 1, RING_DATA, RING_DATA + SIZE / 2, RING_DATA + SIZE + 4096, RING_DATA + SIZE - 1};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int memory = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        assert_int_equal(ftruncate(memory, sizes[i]), 0);
        assert_int_equal(fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
        assert_int_equal(map_result(memory), EINVAL);
        close(memory);
    }
    assert_int_equal(map_result(-1), EINVAL);
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    assert_int_equal(map_result(file), EINVAL);
    close(file);
}

static void a_file_size_limit_is_an_error_and_not_a_signal(void **state)
{
    struct rlimit before, small;
    struct ring ring;
    int memory;
    getrlimit(RLIMIT_FSIZE, &before);
    small = (struct rlimit){4096, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int error = ring_create(&ring, SIZE, &memory);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(error, EFBIG);
}

TESTS(a_reader_in_another_thread_gets_what_was_written,
      a_reader_in_another_process_gets_what_was_written,
      a_ring_that_was_emptied_looks_empty,
      a_frame_of_48_header_bytes_or_40_and_8_takes_one_line,
      a_full_ring_asks_to_be_told_of_room,
      the_end_fits_into_a_full_ring,
      a_payload_that_fails_to_arrive_leaves_no_trace,
      a_head_that_cannot_be_stops_the_writer,
      random_bytes_do_no_harm,
      mutated_heads_do_no_harm,
      references_that_do_not_add_up_break_the_ring,
      an_end_that_has_pieces_breaks_the_ring,
      a_revoked_reference_does_not_hold,
      a_reference_stays_one,
      a_reference_brings_the_first_bytes_of_then,
      a_reference_to_one_piece_takes_one_line,
      a_reference_without_its_first_bytes_is_one,
      a_prefix_of_no_reference_or_of_a_shorter_payload_breaks_the_ring,
      unmapping_gives_all_of_a_ring_back,
      memory_that_could_shrink_is_refused,
      memory_without_the_first_words_of_a_ring_is_refused,
      memory_of_another_size_is_refused,
      a_file_size_limit_is_an_error_and_not_a_signal)
