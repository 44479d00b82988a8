/* Work queues and tables of them: ibv_create_wq(3), ibv_modify_wq(3), ibv_create_rwq_ind_table(3). Thread-safe.
 *
 * Inside, a work queue is a queue pair of its own that only receives: it has a number, a lock and a raw engine, and its
 * completions carry its number. Programs never see that queue pair. */
#ifndef VERBS_QP_WQ_H
#define VERBS_QP_WQ_H

#include "verbs/kinds/ethernet/rss.h"
#include "verbs/qp/qp.h"

enum { WQ_TABLE_MAX = 4096 }; /* entries of an indirection table */

struct wq {
    struct ibv_wq ibv;
    struct qp queue;
};

struct ind_table {
    struct ibv_rwq_ind_table ibv;
    struct object object;
    uint32_t count; /* a power of two */
    struct wq *entries[];
};

/* What a queue pair has instead of queues. */
struct spread {
    struct ind_table *table;
    struct rss_hash hash;
};

struct ibv_wq *wq_create(struct ibv_context *, struct ibv_wq_init_attr *);
int wq_modify(struct ibv_wq *, struct ibv_wq_attr *);
int wq_destroy(struct ibv_wq *);
struct ibv_rwq_ind_table *rwq_ind_table_create(struct ibv_context *, struct ibv_rwq_ind_table_init_attr *);
int rwq_ind_table_destroy(struct ibv_rwq_ind_table *);

/* The queue pair inside the work queue that this frame belongs to. */
struct qp *wq_choose(const struct spread *, const struct ether *);

extern const struct object_class wq_class;

/* The work queue around this queue pair; NULL: it is one that programs see. */
static inline struct wq *wq_around(struct qp *qp)
{
    return qp->object.class == &wq_class ? (struct wq *)((char *)qp - offsetof(struct wq, queue)) : NULL;
}

/* To the error state by an error that the engine didn't see: flushed, and IBV_EVENT_WQ_FATAL raised. Under the lock of
 * its queue pair. */
void wq_fail(struct wq *);

#endif
