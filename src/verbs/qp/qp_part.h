/* A vendor's part of a queue pair (mlx5/part.h), which other code finds by these functions. */
#pragma once

#include "transport/send_queue.h"
#include "verbs/qp/qp.h"

struct qp_part {
    /* Executes work of the vendor's operations (WORK_VENDOR_) in its turn, under qp->lock: the status, and a reason. */
    enum ibv_wc_status (*run)(struct qp *, const struct send_wqe *, enum reason *);
    /* Reports that the program has changed the queue pair's state. Under qp->lock. May be NULL, as the next one. */
    void (*moved)(struct qp *, enum ibv_qp_state);
    /* Ends the part's use by the helper; the queue pair is about to be destroyed. Under process->progress. */
    void (*retire)(struct qp *);
    /* Frees the part; the queue pair has ended. */
    void (*release)(struct qp_part *);
};

/* Returns true if the part of the queue pair executes such work. */
static inline bool qp_part_runs(const struct send_wqe *work)
{
    return work->opcode == WORK_VENDOR_CONFIGURE || work->opcode == WORK_VENDOR_COPY ||
           work->opcode == WORK_VENDOR_NOTHING || work->opcode == WORK_VENDOR_MALFORMED;
}

static inline struct qp_part *qp_part_of(struct qp *qp)
{
    return atomic_load_explicit(&qp->part, memory_order_acquire);
}

/* Gives the queue pair its part, unless another thread was first; returns the one that it has. */
static inline struct qp_part *qp_part_set(struct qp *qp, struct qp_part *part)
{
    struct qp_part *none = NULL;
    return atomic_compare_exchange_strong(&qp->part, &none, part) ? part : none;
}

static inline void qp_part_moved(struct qp *qp, enum ibv_qp_state to)
{
    struct qp_part *part = qp_part_of(qp);
    if (part && part->moved)
        part->moved(qp, to);
}

static inline void qp_part_retire(struct qp *qp)
{
    struct qp_part *part = qp_part_of(qp);
    if (part && part->retire)
        part->retire(qp);
}

static inline void qp_part_release(struct qp *qp)
{
    struct qp_part *part = qp_part_of(qp);
    if (part)
        part->release(part);
}
