/* Completion queues in memory: mlx5dv_init_obj(3). From then on the program reads the entries there, in the adapter's
 * form, and ibv_poll_cq finds none. */
#pragma once

#include <infiniband/mlx5dv.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "verbs/queue/cq.h"

enum { RECORD_CONSUMED, RECORD_ARM };

/* The words of cq->vendor: the bytes of an entry that the program has asked for, and whether the queue is the one of an
 * SRQ in memory with tag matching. */
enum { CQ_VENDOR_SIZE, CQ_VENDOR_TAGS };

struct cq_memory {
    struct cq_part part;
    struct cq *cq;
    LIST_ENTRY(cq_memory) siblings; /* in queues.h; under process->progress */
    uint8_t *entries;
    size_t length;            /* of the memory: the entries, then the record */
    uint32_t count, size;     /* entries, a power of two, of so many bytes */
    uint32_t produced;        /* entries that were written; under cq->lock */
    uint32_t notable;         /* the position after the newest notable one; under cq->lock */
    bool told_ahead;          /* the checker was told that the program is ahead; of the helper */
    uint32_t armed;           /* the record's word that was obeyed; under process->progress */
    bool was_for_all;         /* an arming was for all entries; under process->progress */
    _Atomic uint32_t *record; /* big-endian: what the program has consumed, and how it armed the queue */
};

/* Moves the queue into memory; NULL and errno. The caller adds it to queues.h. Without locks. */
struct cq_memory *cq_memory_make(struct cq *, uint32_t entry_size);

/* The memory of the queue; NULL: it is not in memory. */
struct cq_memory *cq_memory_of(struct cq *);

void cq_memory_describe(const struct cq_memory *, struct mlx5dv_cq *);

/* Obeys an arming that the program has stored; returns true if there was one. Under process->progress. */
bool cq_memory_look(struct cq_memory *);
