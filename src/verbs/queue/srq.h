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

struct ibv_srq *srq_create(struct ibv_pd *,
                           struct ibv_srq_init_attr *); /* NULL and errno; writes the true sizes back */
/* ibv_create_srq_ex(3): basic, with tag matching (srq_tags.h), or for XRC (xrc.h). */
struct ibv_srq *srq_create_ex(struct ibv_context *, struct ibv_srq_init_attr_ex *);
int srq_get_number(struct ibv_srq *, uint32_t *); /* EINVAL: not for XRC, so it has none */
int srq_destroy(struct ibv_srq *);
int srq_modify(struct ibv_srq *, const struct ibv_srq_attr *, int mask);
int srq_query(struct ibv_srq *, struct ibv_srq_attr *);
int srq_post(struct ibv_srq *, struct ibv_recv_wr *, struct ibv_recv_wr **bad);

#endif
