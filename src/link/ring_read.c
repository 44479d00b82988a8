#include <string.h>

#include "base/likely.h"
#include "link/fence.h"
#include "link/ring_layout.h"
#include "wire/guarded.h"

void ring_read_start(struct ring_reader *reader, const struct ring *ring)
{
    memset(reader, 0, sizeof *reader);
    reader->ring = *ring;
}

/* Keeps the compiler from reading shared memory again where the copy is meant: the checked value is the one in use. */
#define FORGET_SOURCE(copy) __asm__ volatile("" : "+m"(copy)::"memory")

/* Each field is read once: the checked value is the one in use. */
static inline struct ring_frame read_head(const uint8_t *at)
{
    const volatile struct ring_frame *head = (const volatile struct ring_frame *)at;
    return (struct ring_frame){
        .headers_length = head->headers_length,
        .kind = head->kind,
        .flags = head->flags,
        .payload_length = head->payload_length,
        .count = head->count,
    };
}

/* Returns true if the lengths in the head agree with each other and with the limits. */
static inline bool is_sound_length(const struct ring_frame *head, uint32_t length)
{
    return head->headers_length <= FRAME_HEADERS_MAX && head->payload_length <= LINK_SEGMENT &&
           length == ring_bytes_frame(head->headers_length, head->payload_length);
}

static bool is_sound_reference(const struct ring_frame *head, uint32_t length)
{
    return head->headers_length <= FRAME_HEADERS_MAX && head->count && head->count <= PAYLOAD_PIECES_MAX &&
           head->payload_length <= LINK_REFERENCE_SEGMENT &&
           (!(head->flags & RING_PREFIXED) || head->payload_length >= RING_PREFIX) &&
           length == ring_reference_frame(head->headers_length, head->count);
}

/* Copies the prefix and the pieces; false when those don't add up to the payload's length. */
static bool take_reference(struct ring_reader *reader, const struct ring_frame *head, const uint8_t *from)
{
    uint64_t sum = 0;
    memcpy(reader->prefix, from, RING_PREFIX);
    from += RING_PREFIX;
    for (uint32_t i = 0; i < head->count; i++, from += sizeof(struct ring_piece)) {
        struct ring_piece piece;
        memcpy(&piece, from, sizeof piece);
        FORGET_SOURCE(piece);
        if (piece.length > head->payload_length)
            return false;
        sum += piece.length;
        reader->pieces[i] = (struct iovec){(void *)(uintptr_t)piece.address, piece.length};
    }
    memcpy(&reader->epoch, from, sizeof reader->epoch);
    return sum == head->payload_length;
}

/* Most headers are within the first line, and all others within the first two: copying all that could be there is
 * cheaper than copying their exact length. */
static void take_headers(struct ring_reader *reader, const uint8_t *from, uint32_t length)
{
    enum { SHORT = RING_LINE - sizeof(struct ring_frame), LONG = 2 * RING_LINE - sizeof(struct ring_frame) };
    _Static_assert((unsigned)FRAME_HEADERS_MAX <= (unsigned)LONG && sizeof reader->headers >= LONG,
                   "all headers fit two lines");
    if (length <= SHORT)
        memcpy(reader->headers, from, SHORT);
    else
        memcpy(reader->headers, from, LONG);
}

static inline void take_bytes(struct ring_reader *reader, const struct ring_frame *head, const uint8_t *at,
                              struct payload *payload)
{
    *payload = (struct payload){.length = head->payload_length};
    reader->reference = false;
    if (!head->payload_length)
        return;
    at += ring_bytes_offset(head->headers_length, head->payload_length);
    reader->pieces[0] = (struct iovec){(void *)(uintptr_t)at, head->payload_length};
    payload->count = 1;
    payload->pieces = reader->pieces;
}

cold static bool break_off(struct ring_reader *reader)
{
    atomic_store(&reader->broken, true);
    return false;
}

static inline void take_head(struct ring_reader *reader, const struct ring_frame *head, const uint8_t *at,
                             struct frame *frame)
{
    take_headers(reader, at + sizeof *head, head->headers_length);
    frame->kind = head->kind;
    frame->headers_length = head->headers_length;
    frame->headers = reader->headers;
    frame->along = head->flags ? 0 : head->count;
}

static bool take_pieces(struct ring_reader *reader, const struct ring_frame *head, const uint8_t *at, uint32_t length,
                        struct payload *payload)
{
    *payload = (struct payload){
        .length = head->payload_length, .count = head->count, .pieces = reader->pieces, .by_reference = true};
    reader->reference = true;
    reader->prefixed = head->flags & RING_PREFIXED;
    return is_sound_reference(head, length) &&
           take_reference(reader, head, at + ring_reference_offset(head->headers_length));
}

/* Takes any frame, or the end, which is not a frame; reads the head once more, and judges it. */
cold static bool ring_read_take_slow(struct ring_reader *reader, const uint8_t *at, uint32_t length,
                                     struct frame *frame)
{
    struct ring_frame head = read_head(at);
    if (head.flags == RING_END && length == RING_LINE) {
        atomic_store(&reader->ended, true);
        return false;
    }
    if (head.kind < FRAME_ROCE || head.kind >= FRAME_KINDS ||
        (head.flags & ~(unsigned)RING_PREFIXED & ~(unsigned)RING_REFERENCE) || head.flags == RING_PREFIXED)
        return break_off(reader);
    if (head.flags ? !take_pieces(reader, &head, at, length, &frame->payload) : !is_sound_length(&head, length))
        return break_off(reader);
    if (!head.flags)
        take_bytes(reader, &head, at, &frame->payload);
    take_head(reader, &head, at, frame);
    return true;
}

/* Takes a frame. The usual one has a BTH, perhaps after a GRH, and carries its bytes. */
static inline bool ring_read_take(struct ring_reader *reader, const uint8_t *at, uint32_t length, struct frame *frame)
{
    struct ring_frame head = read_head(at);
    _Static_assert(FRAME_GRH == FRAME_ROCE + 1, "one comparison finds both");
    bool usual = !head.flags && (unsigned)(head.kind - FRAME_ROCE) <= FRAME_GRH - FRAME_ROCE;
    if (unlikely(!usual))
        return ring_read_take_slow(reader, at, length, frame);
    if (unlikely(!is_sound_length(&head, length)))
        return break_off(reader);
    take_bytes(reader, &head, at, &frame->payload);
    take_head(reader, &head, at, frame);
    return true;
}

static bool is_over(struct ring_reader *reader)
{
    return atomic_load_explicit(&reader->broken, memory_order_relaxed) ||
           atomic_load_explicit(&reader->ended, memory_order_relaxed);
}

bool ring_read(struct ring_reader *reader, struct frame *frame)
{
    uint64_t head = atomic_load_explicit(&reader->head, memory_order_relaxed);
    uint32_t length = atomic_load_explicit(ring_commit_at(&reader->ring, head), memory_order_acquire);
    if (!length || is_over(reader) || !ring_read_take(reader, ring_at(&reader->ring, head), length, frame))
        return false;
    reader->length = length;
    return true;
}

void ring_release(struct ring_reader *reader)
{
    uint64_t head = atomic_load_explicit(&reader->head, memory_order_relaxed);
    atomic_store_explicit(&reader->head, head + reader->length, memory_order_relaxed);
    reader->length = 0;
}

bool ring_prefix_covers(const struct ring_reader *reader, uint32_t offset, const struct iovec *to, uint32_t count)
{
    size_t end = offset;
    for (uint32_t i = 0; i < count && end <= RING_PREFIX; i++)
        end += to[i].iov_len;
    return reader->prefixed && end <= RING_PREFIX;
}

bool ring_store_prefix(const struct ring_reader *reader, uint32_t offset, const struct iovec *to, uint32_t count)
{
    for (uint32_t i = 0; reader->prefixed && i < count && offset < RING_PREFIX; i++) {
        uint32_t left = RING_PREFIX - offset, part = to[i].iov_len < left ? (uint32_t)to[i].iov_len : left;
        if (!guarded_copy(to[i].iov_base, reader->prefix + offset, part))
            return false;
        offset += part;
    }
    return true;
}

/* The other half of ring_revoke: the copy is before this load (the fence, and process_vm_readv is a system call). */
bool ring_reference_holds(const struct ring_reader *reader)
{
#ifndef LINK_FENCE_BY_EXCHANGE
    atomic_thread_fence(memory_order_acquire);
#endif
    return atomic_load_explicit(&reader->ring.shared->epoch, memory_order_acquire) == reader->epoch;
}

/* The head has no meaning while a line of zeros replaces the data. `published` equals it: nothing is published. */
void ring_refuse(struct ring_reader *reader)
{
    static const _Alignas(RING_LINE) uint8_t empty[RING_LINE];
    if (reader->hidden)
        return;
    reader->hidden = reader->ring.data;
    reader->ring.data = (uint8_t *)(uintptr_t)empty;
    atomic_store_explicit(&reader->head, 0, memory_order_relaxed);
    reader->published = reader->asked = 0;
    atomic_store_explicit(&reader->ring.shared->breaks, ++reader->breaks, memory_order_release);
}

/* The place is the writer's word, so it is checked: the reader relies on frames that begin at lines. The writer may
 * wait for room, so one look at that must follow. */
bool ring_resume(struct ring_reader *reader)
{
    const struct ring_shared *shared = reader->ring.shared;
    if (!reader->hidden || atomic_load_explicit(&shared->mended, memory_order_acquire) != reader->breaks)
        return false;
    uint64_t at = atomic_load_explicit(&shared->mended_at, memory_order_relaxed);
    if (at % RING_LINE)
        return false;
    reader->ring.data = reader->hidden;
    reader->hidden = NULL;
    reader->published = at - 1;
    reader->asked = at - reader->ring.size;
    atomic_store_explicit(&reader->head, at, memory_order_release);
    atomic_store(&reader->broken, false);
    return true;
}

/* A writer that waits has less than RING_FRAME_MAX free, so most of the ring is still to be read when we look for its
 * flag: one look in each quarter of the ring is enough, and saves the fence on all other occasions. See ring_ready for
 * the pairing. */
bool ring_publish(struct ring_reader *reader)
{
    struct ring_shared *shared = reader->ring.shared;
    uint64_t head = atomic_load_explicit(&reader->head, memory_order_relaxed);
    if (head == reader->published)
        return false;
    atomic_store_explicit(&shared->head, head, memory_order_release);
    reader->published = head;
    if (head - reader->asked < reader->ring.size / 4)
        return false;
    reader->asked = head;
    fence_full();
    return atomic_load_explicit(&shared->waiting, memory_order_relaxed) &&
           atomic_exchange_explicit(&shared->waiting, 0, memory_order_relaxed);
}

void ring_set_cma(struct ring_reader *reader, bool can)
{
    atomic_store_explicit(&reader->ring.shared->pull, can ? RING_CAN_PULL : RING_CANNOT_PULL, memory_order_release);
}

void ring_want_mark(struct ring_reader *reader, bool wanted)
{
    atomic_store_explicit(&reader->ring.shared->wants_mark, wanted, memory_order_release);
}
