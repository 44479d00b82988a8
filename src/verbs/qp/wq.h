/* Work queues: ibv_create_wq(3).
 *
 * Inside, a work queue is a queue pair of its own that only receives: it has a number, a lock and a raw engine, and its
 * completions carry its number. Programs never see that queue pair. */
#ifndef VERBS_QP_WQ_H
#define VERBS_QP_WQ_H

#include "verbs/qp/qp.h"

struct wq {
    struct ibv_wq ibv;
    struct qp queue;
};

extern const struct object_class wq_class;

/* The work queue around this queue pair; NULL: it is one that programs see. */
static inline struct wq *wq_around(struct qp *qp)
{
    return qp->object.class == &wq_class ? (struct wq *)((char *)qp - offsetof(struct wq, queue)) : NULL;
}

#endif
