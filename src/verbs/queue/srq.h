/* Shared receive queues: ibv_create_srq(3), ibv_modify_srq(3), ibv_post_srq_recv(3). Thread-safe. */
#ifndef VERBS_QUEUE_SRQ_H
#define VERBS_QUEUE_SRQ_H

#include "verbs/object/object.h"
#include "verbs/queue/receive_queue.h"

struct srq {
    struct ibv_srq ibv;
    struct object object;
    struct receive_queue queue;
    struct cq *cq;         /* where all receives of its queue pairs complete; NULL: in theirs */
    struct xrcd *xrcd;     /* IBV_SRQT_XRC: where queue pairs find it by its number; NULL otherwise */
    uint32_t number;       /* likewise */
    struct srq_tags *tags; /* IBV_SRQT_TM: srq_tags.c; NULL otherwise */
    uint32_t async_fetched;
};

static inline bool srq_is_known(const struct ibv_srq *ibv)
{
    return object_is_known(&((const struct srq *)ibv)->object, ibv->handle);
}

/* Raises an asynchronous event of the SRQ. May be called under any lock. */
void srq_raise(struct srq *, enum ibv_event_type);

#endif
