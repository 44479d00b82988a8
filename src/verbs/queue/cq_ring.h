/* The entries of a completion queue, from the oldest (`head`) to the newest (`tail`). One thread at a time puts entries
 * in, one at a time takes them out, and these two need not wait for each other. Functions that move or change entries
 * (those of cq_ring.c) need both kept away; cq.h says how. */
#ifndef VERBS_QUEUE_CQ_RING_H
#define VERBS_QUEUE_CQ_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/likely.h"

/* One completion as it lies in the ring. */
struct completion {
    uint64_t id;
    _Atomic uint32_t *retired; /* the count that polling the entry increments; NULL: none */
    uint32_t retires;          /* by so many; 0: by one, and it is shared by several CQs, or `retired` is NULL */
    uint32_t qp_number;
    uint8_t status, opcode, sl, path_bits;
    uint16_t reason, slid;
    uint32_t length;
    uint32_t immediate_or_key;
    uint32_t source;
    uint16_t flags, pkey_index;
    uint16_t cvlan;
    /* stays when its queue pair is reset or destroyed: it is of a tag-matching SRQ, and reports on its list */
    bool lasting;
    uint32_t flow_tag;
    uint64_t timestamp, wallclock; /* nanoseconds; only when the CQ asks for them */
    uint64_t tag;
    uint32_t tag_private;
};

struct cq_ring {
    struct completion *entries; /* the owner's; not freed here */
    uint32_t capacity;          /* a power of two */
    _Alignas(64) _Atomic uint32_t head;
    _Alignas(64) _Atomic uint32_t tail;
};

/* The receive of a queue that several CQs share (an SRQ), or nothing. */
static inline void cq_retire_shared(const struct completion *entry)
{
    if (!entry->retires && entry->retired)
        atomic_fetch_add_explicit(entry->retired, 1, memory_order_release);
}

/* The program has seen that this work ended: its place in the queue is free, and in a send queue those of the
 * unsignalled work before it. One writer at a time, since all of a queue pair's send completions go to one CQ, and so
 * do those of its receives. */
static inline void cq_retire(const struct completion *entry)
{
    if (unlikely(!entry->retires))
        return cq_retire_shared(entry);
    uint32_t retired = atomic_load_explicit(entry->retired, memory_order_relaxed);
    atomic_store_explicit(entry->retired, retired + entry->retires, memory_order_release);
}

/* Head and tail count on for ever; the place is their remainder by the capacity. */
static inline struct completion *cq_ring_at(const struct cq_ring *ring, uint32_t position)
{
    return &ring->entries[position & (ring->capacity - 1)];
}

/* For the thread that takes out: the entries before `tail` are whole. */
static inline uint32_t cq_ring_tail(const struct cq_ring *ring)
{
    return atomic_load_explicit(&ring->tail, memory_order_acquire);
}

static inline uint32_t cq_ring_head(const struct cq_ring *ring)
{
    return atomic_load_explicit(&ring->head, memory_order_relaxed);
}

/* All before `head` have been read: their places are the other's. */
static inline void cq_ring_taken(struct cq_ring *ring, uint32_t head)
{
    atomic_store_explicit(&ring->head, head, memory_order_release);
}

static inline bool cq_ring_is_empty(const struct cq_ring *ring)
{
    return cq_ring_head(ring) == cq_ring_tail(ring);
}

/* How many entries there are; exact only for a thread that keeps others away. */
static inline uint32_t cq_ring_count(const struct cq_ring *ring)
{
    return cq_ring_tail(ring) - cq_ring_head(ring);
}

/* For the thread that puts in: the place of the next entry, NULL when there is none. No other thread sees it until
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

/* The capacity for so many entries. */
uint32_t cq_ring_capacity(uint32_t entries);

/* The oldest goes without having been seen, in favour of one that comes. Its work has ended nevertheless: the places in
 * its queue are free. */
void cq_ring_drop_oldest(struct cq_ring *);

/* Returns true if an entry of the queue pair lies there. The caller keeps those away that put in. */
bool cq_ring_holds(const struct cq_ring *, uint32_t qp_number);

/* Writes the numbers of the queue pairs whose entries lie there, at most so many: each once, that of the oldest entry
 * first. Returns how many. Likewise. */
unsigned cq_ring_users(const struct cq_ring *, uint32_t *numbers, unsigned most);

/* The entries of a queue pair go, but for those that are lasting; the places of their receives in an SRQ are free.
 * Those that stay move up, so that a CQ is as full as there are completions to be polled. */
void cq_ring_withdraw(struct cq_ring *, uint32_t qp_number);

/* Entries stay, but polling them no longer counts up *retired. */
void cq_ring_forget(struct cq_ring *, const _Atomic uint32_t *retired);

/* From now on they lie in `entries`, of which there are `capacity`, at least cq_ring_count. */
void cq_ring_move(struct cq_ring *, struct completion *entries, uint32_t capacity);

#endif
