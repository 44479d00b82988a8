/* The layout of a ring's memory; for ring*.c and their tests only. */
#pragma once

#include "link/direct.h"
#include "link/link.h"
#include "link/ring.h"

enum {
    RING_MAGIC = 0x52767473, /* "stvR" */
    RING_LAYOUT = 9,
    RING_DATA = 4096,  /* offset of the data area */
    RING_CAN_PULL = 1, /* values of `pull` */
    RING_CANNOT_PULL = 2,
    RING_FRAME_MAX = 192 + LINK_SEGMENT, /* head, longest headers, alignment, payload */
    RING_RESERVE = 2 * RING_LINE,        /* the next frame's commit word, and room for the end */
    RING_ALIGN_ABOVE = 256,              /* longer payloads start at a line */
};

struct ring_shared {
    uint32_t magic, layout, size;              /* written once, before it is handed over */
    _Alignas(RING_LINE) _Atomic uint64_t head; /* by the reader */
    _Alignas(RING_LINE) atomic_uint waiting;   /* set by the writer, cleared by the reader */
    _Alignas(RING_LINE) atomic_uint epoch;     /* by the writer */
    atomic_uint mended;                        /* by the writer: how many of `breaks` it has answered */
    _Atomic uint64_t mended_at;                /* by the writer: where the reader continues after the last of them */
    _Alignas(RING_LINE) atomic_uint pull;      /* by the reader; 0: it has not mapped the ring */
    atomic_uint wants_mark;    /* by the reader: it looks at this ring only once it is marked (marks.h) */
    atomic_uint breaks;        /* by the reader: how often it has found something that is not a frame */
    struct direct_seats seats; /* by the writer */
};

_Static_assert(sizeof(struct ring_shared) <= RING_DATA, "it is one page");

enum ring_frame_flags { RING_REFERENCE = 1, RING_END = 2, RING_PREFIXED = 4 };

/* The head of a frame. The headers follow it; then, 8-aligned, the reference: room for the prefix, which is valid if
 * RING_PREFIXED is set, the pieces and the epoch, in 32 bits; or the bytes. */
struct ring_frame {
    atomic_uint commit; /* length of the whole frame, a multiple of RING_LINE */
    uint16_t headers_length;
    uint8_t kind;
    uint8_t flags;
    uint32_t payload_length;
    uint32_t count; /* pieces of the reference; of a frame with bytes: frame->along */
};

struct ring_piece {
    uint64_t address;
    uint32_t length;
} __attribute__((packed));

_Static_assert(sizeof(struct ring_frame) == 16, "a short message must fit in one line");

static inline uint32_t ring_round(uint32_t value, uint32_t to)
{
    return (value + to - 1) & ~(to - 1);
}

/* Where a frame's bytes start. */
static inline uint32_t ring_bytes_offset(uint32_t headers_length, uint32_t payload_length)
{
    uint32_t offset = (uint32_t)sizeof(struct ring_frame) + headers_length;
    return payload_length > RING_ALIGN_ABOVE ? ring_round(offset, RING_LINE) : offset;
}

static inline uint32_t ring_reference_offset(uint32_t headers_length)
{
    return ring_round((uint32_t)sizeof(struct ring_frame) + headers_length, 8);
}

static inline uint32_t ring_bytes_frame(uint32_t headers_length, uint32_t payload_length)
{
    return ring_round(ring_bytes_offset(headers_length, payload_length) + payload_length, RING_LINE);
}

static inline uint32_t ring_reference_frame(uint32_t headers_length, uint32_t count)
{
    return ring_round(ring_reference_offset(headers_length) + RING_PREFIX +
                          count * (uint32_t)sizeof(struct ring_piece) + (uint32_t)sizeof(uint32_t),
                      RING_LINE);
}

static inline uint8_t *ring_at(const struct ring *ring, uint64_t position)
{
    return ring->data + (position & (ring->size - 1));
}

static inline atomic_uint *ring_commit_at(const struct ring *ring, uint64_t position)
{
    return (atomic_uint *)ring_at(ring, position);
}
