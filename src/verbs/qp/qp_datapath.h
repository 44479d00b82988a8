/* The data path of a queue pair: its engine, and the parts that carry packets between that and the links. It contains
 * struct qp, whose header (qp.h) thus doesn't need these headers. */
#pragma once

#include <stdlib.h>

#include "base/container.h"
#include "base/likely.h"
#include "runtime/endpoint.h"
#include "tap/traffic.h"
#include "transport/engine/engine.h"
#include "transport/tm/tags.h"
#include "verbs/chooser/polled.h"
#include "verbs/chooser/stream.h"
#include "verbs/object/disturbance.h"
#include "verbs/object/domain.h"
#include "verbs/qp/qp.h"

/* SRQs with tag matching (srq_tags.c). */
struct qp_tags {
    struct tags_port port; /* messages and rendezvous under way */
    uint32_t working;      /* places of the send queue that rendezvous use */
    uint32_t read;         /* parts of 64 KiB that rendezvous have read */
};

/* Measures whether packets are faster than what a queue pair does by itself. */
struct qp_ways {
    struct polled work, rendezvous;
};

struct recorded;

/* Each queue pair is the beginning of a data path. Under qp->lock, except the endpoint's lists. */
struct qp_datapath {
    struct qp qp;
    struct engine_owner owner; /* the functions that the engine calls; see life/qp_owner.h */
    struct endpoint endpoint;  /* the functions that the loop calls; see life/qp_endpoint.h */
    struct traffic_flow flow;
    struct engine engine;
    struct qp_tags tags;
    struct stream writes;            /* WRITEs that it does by itself (qp_direct.c) */
    struct qp_ways *ways;            /* which way is faster for such work; NULL until the queue pair has some */
    struct domain_block memory;      /* of the send queue and of `staged` */
    struct send_queue staged;        /* for batches, if the engine itself posts work; else without memory */
    struct disturbance *disturbance; /* its hooks; NULL: nothing disturbs it */
    struct recorded *recorded;       /* record/recorded.h; NULL: the process is not recorded */
};

/* Allocates a queue pair with its data path, all zeroes; NULL: no memory. The caller frees it by free(3). */
static inline struct qp *qp_allocate(void)
{
    _Static_assert(offsetof(struct qp_datapath, qp) == 0, "one address for both");
    struct qp_datapath *datapath = (struct qp_datapath *)calloc(1, sizeof *datapath);
    return datapath ? &datapath->qp : NULL;
}

/* The data path of a queue pair, const if the queue pair is. */
#define qp_datapath(of)                                                                                                \
    _Generic((of), struct qp * : (struct qp_datapath *)(of), const struct qp * : (const struct qp_datapath *)(of))

#define qp_owner(qp) (&qp_datapath(qp)->owner)
#define qp_endpoint(qp) (&qp_datapath(qp)->endpoint)
#define qp_flow(qp) (&qp_datapath(qp)->flow)
#define qp_engine(qp) (&qp_datapath(qp)->engine)
#define qp_tags(qp) (&qp_datapath(qp)->tags)

/* Returns true if work of this opcode is done without a packet at present, where that is possible. Such work is
 * counted, and has no record in the story. */
static inline bool qp_does_directly(const struct qp *qp, unsigned opcode)
{
    return unlikely(engine_settings_of(qp_engine(qp))->direct) &&
           (opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_READ);
}

/* Decides what qp_is_watched returns, after a change of its causes. Under qp->lock. */
static inline void qp_judge_watch(struct qp *qp)
{
    qp->watched = qp->rate_limit.rate || qp_datapath(qp)->disturbance || qp_datapath(qp)->recorded;
}

/* Ends all that is late at a queue pair that is disturbed, as the caller is about to take memory or the queue pair
 * away. Under qp->lock. */
static inline void qp_end_lateness(struct qp *qp)
{
    struct disturbance *disturbance = qp_datapath(qp)->disturbance;
    if (unlikely(disturbance != NULL))
        disturbance->settles(qp);
}

static inline struct qp *qp_of_endpoint(struct endpoint *endpoint)
{
    return &container_of(endpoint, struct qp_datapath, endpoint)->qp;
}

static inline struct qp *qp_of_owner(struct engine_owner *owner)
{
    return &container_of(owner, struct qp_datapath, owner)->qp;
}
