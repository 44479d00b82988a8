/* A ring of frames from one process to another in shared memory: one writer, one reader, no lock, no system call.
 *
 * Memory: a memfd sealed against resizing; its first page holds the few words that both sides share, each on a separate
 * cache line, and the seats of direct.h; after that page is the data area, which is mapped twice back to back so that a
 * frame never wraps. Nothing of it outlives the two processes, and it is not limited by the size of /dev/shm.
 *
 * A frame starts at a multiple of 64 bytes with its commit word: the frame's length, never 0, stored last and with
 * release. The word where the next frame will start is 0 before that, so the reader polls this one word and nothing
 * else: looking at an empty ring costs one load of a line that stays in the reader's cache. The reader never writes to
 * the data area (it maps it read-only), so a line moves between two caches only once for each frame.
 *
 * Neither side trusts the other: a value from shared memory is copied once and then checked. A reader that finds
 * something else than a frame can't know where the next one begins: it refuses the ring (ring_refuse), counts that
 * up in the shared page, and reads nothing more until the writer has put there where it will write next (ring_mend).
 * The frames between are lost, and no more. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "link/frame.h"

enum {
    RING_LINE = 64,
    RING_PREFIX = 16,         /* bytes of a payload that are sent with a reference to the whole payload */
    RING_SIZE_MIN = 64 << 10, /* a quarter of such a ring holds the longest frame */
    RING_SIZE_MAX = 16 << 20,
};

struct ring_shared;
struct direct_seats;

struct ring {
    struct ring_shared *shared; /* NULL: not mapped */
    uint8_t *data;
    uint32_t size; /* of the data area, a power of two */
};

/* Makes an empty ring. *fd is its sealed memfd, to hand over; the caller closes it. 0 or errno. */
int ring_create(struct ring *, uint32_t size, int *fd);

/* Maps a ring that another process made, its data read-only. EINVAL when the descriptor isn't a sealed memfd of a
 * ring's layout and size. The descriptor stays the caller's. */
int ring_map(struct ring *, int fd);
void ring_unmap(struct ring *);

/* Returns the memory of the data to the system and keeps the mapping, for a writer whose reader is gone. */
void ring_discard(struct ring *);

/* The seats where the writer announces accesses to the reader's memory (direct.h). NULL: the ring is not mapped. */
struct direct_seats *ring_seats(const struct ring *);

/* --- writing: all calls under one lock, except those that say otherwise */

struct ring_writer {
    struct ring ring;
    uint64_t tail;            /* where the next frame starts; positions count up for ever */
    uint64_t limit;           /* bytes up to here are known to be free */
    uint64_t clear;           /* the first words of all lines from tail up to here are known to be 0 */
    _Atomic uint64_t written; /* tail, for ring_consumed and ring_got_room from any thread */
    atomic_uint mended;       /* as in the shared page */
};

void ring_write_start(struct ring_writer *, const struct ring *);

/* Returns true if there is room for the longest frame. False while the reader's position is nonsense. */
bool ring_ready(struct ring_writer *);
/* Returns true if ring_ready is known to be true without a look at the reader's position. */
bool ring_is_known_ready(const struct ring_writer *);
/* Asks the reader to report when there is room (ring_publish); true: there is room by now. */
bool ring_ask(struct ring_writer *);
/* Asks as ring_ask does, on any thread and without the lock, before the thread sleeps; ring_ask was called before. */
bool ring_got_room(struct ring_writer *);

/* Writes a frame with the bytes of its payload. With `as_reference` it has instead a reference to the payload, of at
 * most PAYLOAD_PIECES_MAX pieces, which is valid in this epoch, and the first RING_PREFIX bytes, if the payload has as
 * many and this thread can read them. A payload that can't be pulled is not sent (FRAME_SENT), and neither is one of
 * more than LINK_SEGMENT bytes, or LINK_REFERENCE_SEGMENT by reference (FRAME_TOO_LONG). */
enum frame_sent ring_write(struct ring_writer *, const struct frame *, bool as_reference);

/* Writes the last frame; there is always room for it. */
void ring_write_end(struct ring_writer *);

/* Returns true if the reader has published that it took everything. Any thread. */
bool ring_consumed(struct ring_writer *);

/* Returns true, on any thread, if the reader has refused the ring and waits for ring_mend, which must follow under
 * the lock. Frames that were written before that are lost. */
bool ring_is_refused(const struct ring_writer *);
void ring_mend(struct ring_writer *);

/* Makes all references written until now invalid. Any thread. */
void ring_revoke(struct ring_writer *);

/* Any thread: ring_attached returns true if the reader has mapped the ring; its earlier stores are seen then.
 * ring_taken returns the place that the reader published last. */
bool ring_attached(const struct ring_writer *);
uint64_t ring_taken(const struct ring_writer *);

/* Returns true if the reader has reported that it can read our memory. Any thread. */
bool ring_has_cma(const struct ring_writer *);

/* Returns true if the reader wants a mark for each frame (marks.h). Any thread. */
bool ring_wants_mark(const struct ring_writer *);

/* --- reading: one caller at a time */

struct ring_reader {
    struct ring ring;
    _Atomic uint64_t head; /* where the next frame starts; ring_waiting reads it from other threads */
    uint64_t published;    /* the head that the writer knows */
    uint64_t asked;        /* the head when last we looked whether the writer waits for room */
    uint32_t length;       /* of the frame between ring_read and ring_release; 0 at other times */
    uint32_t epoch;        /* of that frame's reference */
    bool reference;        /* that frame carries a reference: payload.pieces are in the writer's memory */
    atomic_bool broken;    /* nonsense was found, and ring_resume has not ended that yet */
    uint32_t breaks;       /* how often nonsense was found; of the last time: */
    uint8_t *hidden;       /* the data, while an empty line is in its place; NULL: it is not replaced */
    atomic_bool ended;     /* the writer wrote its last frame, and we have reached it */
    uint8_t headers[FRAME_HEADERS_MAX];
    struct iovec pieces[PAYLOAD_PIECES_MAX];
    uint8_t prefix[RING_PREFIX]; /* the payload's first bytes, sent with that reference */
    bool prefixed;               /* the frame has a prefix */
};

void ring_read_start(struct ring_reader *, const struct ring *);

/* Returns true, on any thread while the ring is mapped, if there is anything at the head. True too when the reader
 * advanced meanwhile: then the writer may have wrapped around and put anything where we looked. The look is hidden
 * from ThreadSanitizer, since what it may read is thrown away. */
__attribute__((no_sanitize("thread"))) static inline bool ring_waiting(const struct ring_reader *reader)
{
    uint64_t head = atomic_load_explicit(&reader->head, memory_order_acquire);
    const atomic_uint *commit = (const atomic_uint *)(reader->ring.data + (head & (reader->ring.size - 1)));
    bool waiting = atomic_load_explicit(commit, memory_order_acquire) != 0;
    return waiting || atomic_load_explicit(&reader->head, memory_order_relaxed) != head;
}

/* Returns true if there is anything at the head; for the reader itself, which can't advance meanwhile. */
static inline bool ring_has_frame(const struct ring_reader *reader)
{
    uint64_t head = atomic_load_explicit(&reader->head, memory_order_relaxed);
    const atomic_uint *commit = (const atomic_uint *)(reader->ring.data + (head & (reader->ring.size - 1)));
    return atomic_load_explicit(commit, memory_order_acquire) != 0;
}

/* Reads the next frame; its headers and pieces are in the reader, its bytes in the ring, until ring_release. False:
 * the ring is empty, is broken or has ended. */
bool ring_read(struct ring_reader *, struct frame *);
void ring_release(struct ring_reader *);

/* The prefix of the current frame's reference. Its bytes are the payload's first ones, whatever the writer's memory
 * holds by now: a receiver that chooses a buffer by them stores the same bytes into it.
 *
 * ring_prefix_covers returns true if the prefix has all of `to`, from `offset` of the payload on. ring_store_prefix
 * stores the part of `to` that it has; false: memory of `to` is gone. */
bool ring_prefix_covers(const struct ring_reader *, uint32_t offset, const struct iovec *to, uint32_t count);
bool ring_store_prefix(const struct ring_reader *, uint32_t offset, const struct iovec *to, uint32_t count);

/* Returns true if the reference of the current frame is still valid. Ask after copying. */
bool ring_reference_holds(const struct ring_reader *);

/* Makes a broken ring look empty from now on, and asks the writer to mend it. Wake the writer. No other thread may
 * call ring_waiting meanwhile. */
void ring_refuse(struct ring_reader *);
/* Ends what ring_refuse began, under its rules. True: the writer has mended the ring, frames can be read. Publish. */
bool ring_resume(struct ring_reader *);

/* Publishes the reader's place to the writer. True: the writer waits for room, wake it. */
bool ring_publish(struct ring_reader *);

/* Reports to the writer that we have mapped the ring, and whether we can read its memory. */
void ring_set_cma(struct ring_reader *, bool);

/* Asks the writer for marks, or withdraws the question. */
void ring_want_mark(struct ring_reader *, bool);
