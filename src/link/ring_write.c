#include <string.h>

#include "base/likely.h"
#include "link/fence.h"
#include "link/ring_layout.h"
#include "wire/foreign/foreign.h"
#include "wire/guarded.h"

enum { CLEAR_AHEAD = 8 * RING_LINE, RING_SHORT = 64 };

void ring_write_start(struct ring_writer *writer, const struct ring *ring)
{
    *writer = (struct ring_writer){.ring = *ring, .limit = ring->size, .clear = ring->size};
}

/* Reads how far the reader is. False: the position is impossible, so nothing is known; the reader publishes another one
 * once it has taken something. */
static bool look_at_head(struct ring_writer *writer)
{
    uint64_t head = atomic_load_explicit(&writer->ring.shared->head, memory_order_acquire);
    bool possible = writer->tail - head <= writer->ring.size; /* huge if the head is beyond the tail */
    if (possible)
        writer->limit = head + writer->ring.size;
    return possible;
}

static inline bool is_known_free(const struct ring_writer *writer, uint32_t length)
{
    return writer->limit - writer->tail >= length + RING_RESERVE;
}

/* A separate function, so that a caller that knows of room saves no registers for it. */
cold static bool has_got_room(struct ring_writer *writer, uint32_t length)
{
    return look_at_head(writer) && is_known_free(writer, length);
}

static inline bool has_room(struct ring_writer *writer, uint32_t length)
{
    return likely(is_known_free(writer, length)) || has_got_room(writer, length);
}

bool ring_is_known_ready(const struct ring_writer *writer)
{
    return is_known_free(writer, RING_FRAME_MAX);
}

bool ring_ready(struct ring_writer *writer)
{
    return has_room(writer, RING_FRAME_MAX);
}

/* The flag and the head are a Dekker pair: we store the flag and then load the head; the reader stores its head and
 * then loads the flag (ring_publish), both with a full fence between: one of us sees the other. */
bool ring_ask(struct ring_writer *writer)
{
    atomic_store_explicit(&writer->ring.shared->waiting, 1, memory_order_relaxed);
    fence_full();
    return has_room(writer, RING_FRAME_MAX);
}

/* The reader may have taken the flag back for room that we had found and used before we asked: it stored its head,
 * we looked, wrote and asked, and then it looked for the flag. It found us awake and did not ring, so a thread that
 * is about to sleep asks again. The fence pairs with the one in ring_publish, as in ring_ask. */
bool ring_got_room(struct ring_writer *writer)
{
    atomic_store_explicit(&writer->ring.shared->waiting, 1, memory_order_relaxed);
    fence_full();
    uint64_t head = atomic_load_explicit(&writer->ring.shared->head, memory_order_acquire);
    uint64_t tail = atomic_load_explicit(&writer->written, memory_order_relaxed);
    return tail - head + RING_FRAME_MAX + RING_RESERVE <= writer->ring.size;
}

/* Zeros the commit words of the lines to come, after the commit: fetching those lines into our cache then costs the
 * receiver no time, and the next short frame finds its own line there. Lines that are not free are left alone. */
static inline void clear_ahead(struct ring_writer *writer)
{
    uint64_t end = writer->tail + CLEAR_AHEAD < writer->limit ? writer->tail + CLEAR_AHEAD : writer->limit;
    uint64_t clear = writer->clear;
    for (; clear < end; clear += RING_LINE)
        atomic_store_explicit(ring_commit_at(&writer->ring, clear), 0, memory_order_relaxed);
    writer->clear = clear;
}

static inline void commit(struct ring_writer *writer, struct ring_frame *frame, uint32_t length)
{
    uint64_t next = writer->tail + length;
    if (next >= writer->clear) {
        atomic_store_explicit(ring_commit_at(&writer->ring, next), 0, memory_order_relaxed);
        writer->clear = next + RING_LINE;
    }
    atomic_store_explicit(&frame->commit, length, memory_order_release);
    writer->tail = next;
    atomic_store_explicit(&writer->written, next, memory_order_relaxed);
    clear_ahead(writer);
}

/* Copies the first `most` bytes of the payload, or all if it has fewer. False: the memory is gone. */
static inline bool gather(const struct payload *payload, uint8_t *to, uint32_t most)
{
    uint8_t *end = to + most;
    for (uint32_t i = 0; i < payload->count; i++) {
        size_t length = payload->pieces[i].iov_len;
        if (length > (size_t)(end - to))
            length = (size_t)(end - to);
        if (!guarded_copy(to, payload->pieces[i].iov_base, length))
            return false;
        to += length;
    }
    return true;
}

/* Returns the frame's flags. Memory that the processor does not reach, as a device's, has no prefix. */
static uint8_t write_reference(const struct ring_writer *writer, const struct payload *payload, uint8_t *to)
{
    bool prefixed = payload->length >= RING_PREFIX && gather(payload, to, RING_PREFIX);
    to += RING_PREFIX;
    for (uint32_t i = 0; i < payload->count; i++, to += sizeof(struct ring_piece)) {
        const struct iovec *from = &payload->pieces[i];
        memcpy(to, &(struct ring_piece){(uintptr_t)from->iov_base, (uint32_t)from->iov_len}, sizeof(struct ring_piece));
    }
    uint32_t epoch = atomic_load_explicit(&writer->ring.shared->epoch, memory_order_relaxed);
    memcpy(to, &epoch, sizeof epoch);
    return (uint8_t)(RING_REFERENCE | (prefixed ? RING_PREFIXED : 0));
}

/* Copies without a call what datagrams of a host have, a GRH and 12 to 36 bytes more. */
static inline void write_long_headers(uint8_t *to, const uint8_t *from, uint32_t length)
{
    enum { LEAST = 48, MOST = 80, PART = 32 };
    if (length < LEAST || length > MOST)
        return (void)memcpy(to, from, length);
    memcpy(to, from, LEAST);
    memcpy(to + length - PART, from + length - PART, PART);
}

/* Copies short headers, as most are, without a call: in two words that overlap in the middle. */
static inline void write_headers(uint8_t *to, const uint8_t *from, uint32_t length)
{
    if (length > 32 || length < 8) {
        write_long_headers(to, from, length);
    } else if (length >= 16) {
        memcpy(to, from, 16);
        memcpy(to + length - 16, from + length - 16, 16);
    } else {
        memcpy(to, from, 8);
        memcpy(to + length - 8, from + length - 8, 8);
    }
}

__attribute__((always_inline)) static inline void write_head(struct ring_frame *to, const struct frame *frame,
                                                             uint8_t flags)
{
    to->headers_length = frame->headers_length;
    to->kind = frame->kind;
    to->flags = flags;
    to->payload_length = frame->payload.length;
    to->count = flags & RING_REFERENCE ? frame->payload.count : frame->along;
    write_headers((uint8_t *)(to + 1), frame->headers, frame->headers_length);
}

/* False: *sent is the answer. Nothing is committed then, but lines after the one at tail may have been written to.
 * If the payload can't be copied from the sender, the packet is dropped; the link that brought it records why. */
static bool write_bytes(struct ring_writer *writer, const struct payload *payload, uint8_t *to, enum frame_sent *sent)
{
    bool pulls = payload->pull;
    struct iovec all = {to, payload->length};
    if (pulls ? payload->pull(payload, 0, &all, 1)
              : gather(payload, to, payload->length) || foreign_payload_copy(payload, 0, &all, 1, 0))
        return true;
    writer->clear = writer->tail + RING_LINE;
    *sent = pulls ? FRAME_SENT : FRAME_UNREADABLE;
    return false;
}

cold static enum frame_sent ring_write_slow(struct ring_writer *writer, const struct frame *frame, bool as_reference)
{
    const struct payload *payload = &frame->payload;
    uint32_t headers = frame->headers_length;
    if (payload->length > (as_reference ? (uint32_t)LINK_REFERENCE_SEGMENT : (uint32_t)LINK_SEGMENT))
        return FRAME_TOO_LONG;
    uint32_t length =
        as_reference ? ring_reference_frame(headers, payload->count) : ring_bytes_frame(headers, payload->length);
    if (!has_room(writer, length))
        return FRAME_NO_ROOM;
    struct ring_frame *to = (struct ring_frame *)ring_at(&writer->ring, writer->tail);
    enum frame_sent sent;
    uint8_t flags = 0;
    if (as_reference)
        flags = write_reference(writer, payload, (uint8_t *)to + ring_reference_offset(headers));
    else if (payload->length &&
             !write_bytes(writer, payload, (uint8_t *)to + ring_bytes_offset(headers, payload->length), &sent))
        return sent;
    write_head(to, frame, flags);
    commit(writer, to, length);
    return FRAME_SENT;
}

/* Writes most frames: at most one short piece, of this process's memory. False: nothing was sent, call
 * ring_write_slow. */
static inline bool write_short(struct ring_writer *writer, const struct frame *frame)
{
    const struct payload *payload = &frame->payload;
    uint32_t headers = frame->headers_length, length;
    if (payload->length > RING_SHORT || payload->count > 1 || payload->pull)
        return false;
    length = ring_round((uint32_t)sizeof(struct ring_frame) + headers + payload->length, RING_LINE);
    if (unlikely(!is_known_free(writer, length)))
        return false;
    struct ring_frame *to = (struct ring_frame *)ring_at(&writer->ring, writer->tail);
    if (payload->length && !guarded_copy((uint8_t *)(to + 1) + headers, payload->pieces->iov_base, payload->length))
        return false;
    write_head(to, frame, 0);
    commit(writer, to, length);
    return true;
}

enum frame_sent ring_write(struct ring_writer *writer, const struct frame *frame, bool as_reference)
{
    bool sent = !as_reference && write_short(writer, frame);
    return likely(sent) ? FRAME_SENT : ring_write_slow(writer, frame, as_reference);
}

void ring_write_end(struct ring_writer *writer)
{
    struct ring_frame *to = (struct ring_frame *)ring_at(&writer->ring, writer->tail);
    write_head(to, &(struct frame){.headers = (const uint8_t *)""}, RING_END);
    commit(writer, to, RING_LINE);
}

bool ring_consumed(struct ring_writer *writer)
{
    uint64_t tail = atomic_load_explicit(&writer->written, memory_order_relaxed);
    return atomic_load_explicit(&writer->ring.shared->head, memory_order_acquire) == tail;
}

/* A seqlock whose data is the writer's memory: the caller changes that memory after the return, so after the new
 * epoch became visible (the fence keeps stores to the memory after the store of the epoch, and system calls such as
 * munmap can't overtake it either). The reader copies first and loads the epoch afterwards: if it copied anything of
 * the changed memory, it sees the new epoch and throws the copy away. */
void ring_revoke(struct ring_writer *writer)
{
    atomic_fetch_add_explicit(&writer->ring.shared->epoch, 1, memory_order_seq_cst);
    fence_full();
}

bool ring_is_refused(const struct ring_writer *writer)
{
    unsigned breaks = atomic_load_explicit(&writer->ring.shared->breaks, memory_order_acquire);
    return breaks != atomic_load_explicit(&writer->mended, memory_order_relaxed);
}

/* Whatever the data holds, no frame begins at the tail, and the lines after it are cleared anew. The reader is not
 * trusted with the number: if it counts up meanwhile, the next look sees that. */
void ring_mend(struct ring_writer *writer)
{
    struct ring_shared *shared = writer->ring.shared;
    unsigned breaks = atomic_load_explicit(&shared->breaks, memory_order_acquire);
    atomic_store_explicit(ring_commit_at(&writer->ring, writer->tail), 0, memory_order_relaxed);
    writer->clear = writer->tail + RING_LINE;
    atomic_store_explicit(&shared->mended_at, writer->tail, memory_order_relaxed);
    atomic_store_explicit(&shared->mended, breaks, memory_order_release);
    atomic_store_explicit(&writer->mended, breaks, memory_order_relaxed);
}

bool ring_has_cma(const struct ring_writer *writer)
{
    return atomic_load_explicit(&writer->ring.shared->pull, memory_order_relaxed) == RING_CAN_PULL;
}

bool ring_wants_mark(const struct ring_writer *writer)
{
    return atomic_load_explicit(&writer->ring.shared->wants_mark, memory_order_acquire) != 0;
}

bool ring_attached(const struct ring_writer *writer)
{
    return atomic_load_explicit(&writer->ring.shared->pull, memory_order_acquire) != 0;
}

uint64_t ring_taken(const struct ring_writer *writer)
{
    return atomic_load_explicit(&writer->ring.shared->head, memory_order_acquire);
}
