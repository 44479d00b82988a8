#include "wire/payload.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/testing/group.h"
#include "wire/testing/random.h"

enum { ROOM = 256, MARGIN = 16 };

static uint8_t source[ROOM];
static _Alignas(64) uint8_t target[ROOM + 2 * MARGIN];

static void prepare(void)
{
    for (unsigned i = 0; i < ROOM; i++)
        source[i] = (uint8_t)(i + 1);
    memset(target, 0xee, sizeof(target));
}

static void expect(const uint8_t *at, unsigned offset, size_t length)
{
    for (size_t i = 0; i < sizeof(target); i++) {
        bool inside = target + i >= at && target + i < at + length;
        assert_int_equal(target[i], inside ? source[offset + (target + i - at)] : 0xee);
    }
}

static void one_piece_into_one_piece_at_every_alignment(void **state)
{
    struct iovec piece = {source, ROOM};
    struct payload payload = {.length = ROOM, .count = 1, .pieces = &piece};
    for (unsigned shift = 0; shift < MARGIN; shift++)
        for (uint32_t offset = 0; offset < 9; offset++)
            for (size_t length = 0; length + offset <= ROOM; length += length < 140 ? 1 : 13) {
                prepare();
                struct iovec to = {target + MARGIN + shift, length};
                assert_true(payload_copy(&payload, offset, &to, 1));
                expect(to.iov_base, offset, length);
            }
}

static unsigned draw_below(size_t limit)
{
    return (unsigned)(draw() % limit);
}

/* Cuts `length` bytes at `from` into random pieces, empty ones among them. */
static uint32_t cut(uint8_t *from, size_t length, struct iovec *pieces)
{
    uint32_t count = 0, most = 1 + draw_below(PAYLOAD_PIECES_MAX - 1);
    while (count < most) {
        size_t part = count + 1 == most ? length : draw_below(length + 1);
        pieces[count++] = (struct iovec){part ? from : NULL, part};
        from += part;
        length -= part;
    }
    return count;
}

static unsigned pulls;

/* A link's way to fetch: from the highest address down, as a link is free to do. */
static bool pull_backwards(const struct payload *payload, uint32_t offset, const struct iovec *to, uint32_t count)
{
    const uint8_t *from = payload->source;
    pulls++;
    assert_true(count <= PAYLOAD_PIECES_MAX + 1);
    for (uint32_t i = 0; i < count; i++) {
        for (size_t j = to[i].iov_len; j--;)
            ((uint8_t *)to[i].iov_base)[j] = from[offset + j];
        offset += to[i].iov_len;
    }
    assert_true(offset <= payload->length);
    return true;
}

static void pieces_into_pieces(bool pulled)
{
    for (unsigned round = 0; round < 50000; round++) {
        prepare();
        struct iovec pieces[PAYLOAD_PIECES_MAX], to[PAYLOAD_PIECES_MAX];
        unsigned all = draw_below(ROOM + 1), offset = draw_below(all + 1), length = draw_below(all - offset + 1);
        struct payload payload = {.length = all, .count = cut(source, all, pieces), .pieces = pieces};
        uint8_t *at = target + draw_below(MARGIN);
        uint32_t count = cut(at, length, to);
        if (pulled)
            payload = (struct payload){.length = all, .by_reference = true, .pull = pull_backwards, .source = source};
        assert_true(payload_copy(&payload, offset, to, count));
        expect(at, offset, length);
    }
}

static void many_pieces_into_many_pieces(void **state)
{
    pieces_into_pieces(false);
}

static void many_pieces_are_pulled(void **state)
{
    pulls = 0;
    pieces_into_pieces(true);
    assert_true(pulls > 10000);
}

static void nothing_past_the_payload_is_read(void **state)
{
    prepare();
    struct iovec piece = {source, 16}, pieces[2] = {{source, 8}, {source + 8, 8}};
    struct payload one = {.length = 16, .count = 1, .pieces = &piece};
    struct payload two = {.length = 16, .count = 2, .pieces = pieces};
    struct payload lies = {.length = 32, .count = 2, .pieces = pieces}; /* fewer bytes than it says */
    struct payload empty = {0};
    struct iovec to[2] = {{target, 9}, {target + 9, 8}}, huge = {target, SIZE_MAX}, none = {NULL, 0};
    assert_false(payload_copy(&one, 0, to, 2));
    assert_false(payload_copy(&one, 8, to, 1));
    assert_false(payload_copy(&one, 17, to, 1));
    assert_false(payload_copy(&one, UINT32_MAX, &none, 1));
    assert_false(payload_copy(&one, 1, &huge, 1));
    assert_false(payload_copy(&two, 0, to, 2));
    assert_false(payload_copy(&lies, 0, to, 2));
    assert_false(payload_copy(&empty, 0, to, 1));
    assert_true(payload_copy(&empty, 0, &none, 1));
    assert_true(payload_copy(&empty, 0, NULL, 0));
    assert_true(payload_copy(&one, 16, &none, 1));
    struct iovec around[2] = {{target, 16}, {target, SIZE_MAX - 7}}; /* adds up to 8 when it wraps */
    assert_false(payload_copy(&two, 0, around, 2));
}

static bool pull_nothing(const struct payload *payload, uint32_t offset, const struct iovec *to, uint32_t count)
{
    memset(to[0].iov_base, 0, to[0].iov_len);
    return false;
}

static void a_failed_pull_leaves_the_end_alone(void **state)
{
    prepare();
    struct payload payload = {.length = 16, .pull = pull_nothing};
    struct iovec to = {target, 16};
    assert_false(payload_copy(&payload, 0, &to, 1));
    for (unsigned i = 8; i < 16; i++)
        assert_int_equal(target[i], 0xee);
}

static void a_region_may_be_copied_onto_itself(void **state)
{
    for (size_t length = 1; length < 100; length++)
        for (int shift = -20; shift <= 20; shift++) {
            prepare();
            uint8_t *from = target + MARGIN + 20, expected[100];
            memcpy(from, source, length);
            memcpy(expected, source, length);
            struct iovec piece = {from, length}, to = {from + shift, length};
            struct payload payload = {.length = (uint32_t)length, .count = 1, .pieces = &piece};
            assert_true(payload_copy(&payload, 0, &to, 1));
            assert_memory_equal(from + shift, expected, length);
        }
}

/* A program that polls the end of its memory for a WRITE, as latency tests do, sees everything before the end. */
struct poll {
    struct payload payload;
    struct iovec to[4];
    uint32_t count;
    uint8_t *start;
    size_t length;
    uint32_t wrong;
    uint32_t rounds;
};

static uint8_t turn; /* the value that fills the next message; 0: the reader is done with the last */

static void *write_rounds(void *argument)
{
    struct poll *poll = argument;
    for (uint32_t round = 0; round < poll->rounds; round++) {
        while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE))
            sched_yield();
        memset(source, (int)(round % 255 + 1), poll->length);
        __atomic_store_n(&turn, 1, __ATOMIC_RELEASE);
        payload_copy(&poll->payload, 0, poll->to, poll->count);
    }
    return NULL;
}

/* The last byte as a program polls it: with the widest word that is aligned and in the last piece. (A narrower load
 * would do on any machine, but ThreadSanitizer pairs loads and stores by address.) */
static uint8_t load_last_byte(const struct poll *poll)
{
    const struct iovec *end = &poll->to[poll->count - 1];
    uint8_t *stop = poll->start + poll->length;
    if ((uintptr_t)stop % 8 == 0 && end->iov_len >= 8)
        return (uint8_t)(__atomic_load_n((uint64_t *)(void *)(stop - 8), __ATOMIC_ACQUIRE) >> 56);
    if ((uintptr_t)stop % 4 == 0 && end->iov_len >= 4)
        return (uint8_t)(__atomic_load_n((uint32_t *)(void *)(stop - 4), __ATOMIC_ACQUIRE) >> 24);
    if ((uintptr_t)stop % 2 == 0 && end->iov_len >= 2)
        return (uint8_t)(__atomic_load_n((uint16_t *)(void *)(stop - 2), __ATOMIC_ACQUIRE) >> 8);
    return __atomic_load_n(stop - 1, __ATOMIC_ACQUIRE);
}

static void read_rounds(struct poll *poll)
{
    for (uint32_t round = 0; round < poll->rounds; round++) {
        uint8_t value = (uint8_t)(round % 255 + 1);
        while (load_last_byte(poll) != value)
            sched_yield();
        for (size_t i = 0; i < poll->length; i++)
            poll->wrong += poll->start[i] != value;
        __atomic_store_n(&turn, 0, __ATOMIC_RELEASE);
    }
}

static void poll_the_end(size_t length, unsigned shift, uint32_t destinations, bool pulled)
{
    memset(target, 0, sizeof(target));
    struct iovec piece = {source, length};
    struct poll poll = {.payload = {.length = (uint32_t)length, .count = 1, .pieces = &piece}, .count = destinations};
    poll.start = target + shift;
    poll.length = length;
    poll.rounds = 300;
    if (pulled)
        poll.payload = (struct payload){.length = (uint32_t)length, .pull = pull_backwards, .source = source};
    for (uint32_t i = 0; i < destinations; i++) {
        size_t part = length / destinations;
        poll.to[i] = (struct iovec){poll.start + i * part, i + 1 == destinations ? length - i * part : part};
    }
    turn = 0;
    pthread_t writer;
    assert_int_equal(pthread_create(&writer, NULL, write_rounds, &poll), 0);
    read_rounds(&poll);
    pthread_join(writer, NULL);
    assert_int_equal(poll.wrong, 0);
}

static void the_last_byte_lands_last(void **state)
{
    static const size_t lengths[] = {1, 2, 7, 8, 13, 64, 100, 250};
    for (unsigned i = 0; i < sizeof(lengths) / sizeof(*lengths); i++)
        for (unsigned shift = 0; shift < 8; shift += 3) {
            poll_the_end(lengths[i], shift, 1, false);
            poll_the_end(lengths[i], shift, 1, true);
            if (lengths[i] > 4)
                poll_the_end(lengths[i], shift, 4, false);
        }
}

/* Memory that is not there is link/guard_test.c's. */
static void memory_that_is_there_can_be_read_and_written(void **state)
{
    struct iovec pieces[] = {{source, ROOM}, {target, 3}, {target + 7, 0}};
    assert_true(payload_is_there(&(struct payload){.length = ROOM + 3, .count = 3, .pieces = pieces}));
    assert_true(payload_is_there(&(struct payload){.length = 0}));
    assert_true(payload_can_land(pieces, 3));
    assert_true(payload_can_land(NULL, 0));
}

TESTS(one_piece_into_one_piece_at_every_alignment,
      many_pieces_into_many_pieces,
      many_pieces_are_pulled,
      nothing_past_the_payload_is_read,
      a_failed_pull_leaves_the_end_alone,
      a_region_may_be_copied_onto_itself,
      memory_that_is_there_can_be_read_and_written,
      the_last_byte_lands_last)
