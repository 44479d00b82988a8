/* The entries of a completion queue, from the oldest (`head`) to the newest (`tail`). One thread at a time puts entries
 * in, one at a time takes them out, and these two need not wait for each other. Functions that move or change entries
 * (in cq_ring.c) need both kept away; cq_entries.h says how. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/likely.h"

/* A completion as it is in the ring. */
struct completion {
    uint64_t id;
    _Atomic uint32_t *retired; /* the count that polling the entry increments; or NULL */
    uint32_t retires;          /* by how much; 0: by one, as several CQs share the count, or `retired` is NULL */
    uint32_t qp_number;
    uint8_t status, opcode, sl, path_bits;
    uint16_t reason, slid;
    uint32_t length;
    uint32_t immediate_or_key;
    uint32_t source;
    uint16_t flags, pkey_index;
    uint16_t cvlan;
    /* the entry stays when its queue pair is reset or destroyed, as it reports on a tag-matching or XRC SRQ */
    bool lasting;
    bool unsolicited; /* no receive was taken (efadv_create_cq(3)) */
    uint32_t flow_tag;
    union {
        struct {
            uint64_t timestamp, wallclock; /* nanoseconds; only when the CQ asks for them */
        };
        uint8_t sgid[16]; /* the sender's, where slid says that it has no number; EFA has no timestamps */
    };
    uint64_t tag;
    uint32_t tag_private;
};

struct cq_ring {
    struct completion *entries; /* the owner's; not freed here */
    uint32_t capacity;          /* a power of two */
    _Alignas(64) _Atomic uint32_t head;
    _Alignas(64) _Atomic uint32_t tail;
};

/* Retires an entry whose receive queue several CQs share (an SRQ); does nothing with other entries. */
static inline void cq_retire_shared(const struct completion *entry)
{
    if (!entry->retires && entry->retired)
        atomic_fetch_add_explicit(entry->retired, 1, memory_order_release);
}

/* Notes that the program has seen the end of this work: its place in the queue is free, and in a send queue also the
 * places of the unsignalled work before it. A count has one writer at a time, since one CQ has all send
 * completions of a queue pair, and one CQ all of its receives. */
static inline void cq_retire(const struct completion *entry)
{
    if (unlikely(!entry->retires))
        return cq_retire_shared(entry);
    uint32_t retired = atomic_load_explicit(entry->retired, memory_order_relaxed);
    atomic_store_explicit(entry->retired, retired + entry->retires, memory_order_release);
}

/* Head and tail count up for ever; the place is their remainder by the capacity. */
static inline struct completion *cq_ring_at(const struct cq_ring *ring, uint32_t position)
{
    return &ring->entries[position & (ring->capacity - 1)];
}

/* The tail, for the thread that takes out: the entries before it are whole. */
static inline uint32_t cq_ring_tail(const struct cq_ring *ring)
{
    return atomic_load_explicit(&ring->tail, memory_order_acquire);
}

static inline uint32_t cq_ring_head(const struct cq_ring *ring)
{
    return atomic_load_explicit(&ring->head, memory_order_relaxed);
}

/* Notes that all entries before `head` have been read: their places are free. */
static inline void cq_ring_taken(struct cq_ring *ring, uint32_t head)
{
    atomic_store_explicit(&ring->head, head, memory_order_release);
}

static inline bool cq_ring_is_empty(const struct cq_ring *ring)
{
    return cq_ring_head(ring) == cq_ring_tail(ring);
}

/* The number of entries; exact only for a thread that keeps others away. */
static inline uint32_t cq_ring_count(const struct cq_ring *ring)
{
    return cq_ring_tail(ring) - cq_ring_head(ring);
}

/* The place of the next entry, for the thread that puts in; NULL: the ring is full. No other thread sees it until
 * cq_ring_put. */
static inline struct completion *cq_ring_room(const struct cq_ring *ring)
{
    uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    if (tail - atomic_load_explicit(&ring->head, memory_order_acquire) == ring->capacity)
        return NULL;
    return cq_ring_at(ring, tail);
}

static inline void cq_ring_put(struct cq_ring *ring)
{
    uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    atomic_store_explicit(&ring->tail, tail + 1, memory_order_release);
}

/* The capacity for this many entries. */
uint32_t cq_ring_capacity(uint32_t entries);

/* Drops the oldest entry, which no program has seen, for a new one. Its work has ended nevertheless: the places in its
 * queue are free. */
void cq_ring_drop_oldest(struct cq_ring *);

/* Returns true if the ring has an entry of the queue pair. The caller keeps threads away that put in. */
bool cq_ring_holds(const struct cq_ring *, uint32_t qp_number);

/* Writes the numbers of the queue pairs whose entries are in the ring, at most `most`: each once, the oldest entry's
 * first. Returns how many. The caller keeps threads away that put in. */
unsigned cq_ring_users(const struct cq_ring *, uint32_t *numbers, unsigned most);

/* Removes the entries of a queue pair, except lasting ones; the places of their receives in an SRQ are free. The
 * remaining entries move up, so that only completions to be polled fill a CQ. */
void cq_ring_withdraw(struct cq_ring *, uint32_t qp_number);

/* Keeps entries, but polling them no longer increments *retired. */
void cq_ring_forget(struct cq_ring *, const _Atomic uint32_t *retired);

/* Moves the entries to the array `entries`, which becomes the ring's: it has room for `capacity`, a power of two and at
 * least cq_ring_count. */
void cq_ring_move(struct cq_ring *, struct completion *entries, uint32_t capacity);
