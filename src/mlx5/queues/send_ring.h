/* The send queue of a queue pair in memory: mlx5dv_init_obj(3). The program writes work requests in the adapter's form
 * (form.h) into blocks of 64 bytes, and the number of blocks, modulo 2^16, into the record. The helper takes them. */
#pragma once

#include <infiniband/mlx5dv.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "base/nanos.h"
#include "verbs/memory/rkeys.h"

struct qp;

enum { RECORD_RECEIVE, RECORD_SEND, RECORD_WORDS };

struct send_ring {
    struct qp *qp;
    LIST_ENTRY(send_ring) siblings; /* in queues.h; under process->progress */
    void *memory;                   /* the blocks, the receive queue, the record */
    size_t size;
    uint8_t *blocks;
    uint32_t count;            /* blocks; a power of two */
    _Atomic uint16_t taken;    /* the index after the last block that was taken; changed under qp->lock */
    _Atomic uint32_t *records; /* big-endian, RECORD_WORDS of them */
    struct region region;      /* the blocks, from which bytes are sent */
};

/* Makes the queues in memory; NULL and errno. The caller adds the ring to queues.h. Without locks. */
struct send_ring *send_ring_make(struct qp *);
void send_ring_free(struct send_ring *);

/* Describes them to the program. */
void send_ring_describe(const struct send_ring *, struct mlx5dv_qp *);

/* Takes the work that the program has posted; returns how much. Under process->progress. */
unsigned send_ring_take(struct send_ring *, nanos now);

/* Forgets all that was posted, as the queue pair is reset. Under qp->lock. */
void send_ring_clear(struct send_ring *);

/* Returns true if the record has an index that was not taken: a hint, as it needs no lock. */
static inline bool send_ring_has_work(const struct send_ring *ring)
{
    uint32_t record = atomic_load_explicit(&ring->records[RECORD_SEND], memory_order_acquire);
    return (uint16_t)__builtin_bswap32(record) != atomic_load_explicit(&ring->taken, memory_order_relaxed);
}
