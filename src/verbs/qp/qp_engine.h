/* The work of a queue pair around its engine (transport/engine/engine.h). All under qp->lock. */
#pragma once

#include "verbs/object/process_objects.h"
#include "verbs/qp/qp_datapath.h"

/* Gives a packet to the engine, or drops it if it is of another service. */
void qp_receive(struct qp *, const struct packet *, nanos now);
/* Returns true if the engine has output, or rendezvous have work. */
bool qp_has_output(const struct qp *);
/* A faster form of qp_has_output, which is true also for output that may not leave yet. */
static inline bool qp_may_have_output(const struct qp *qp)
{
    return engine_may_have_output(qp_engine(qp)) || tags_have_work(&qp_tags(qp)->port);
}

/* Sets a deadline of the queue pair: its timer expires at this time at the latest. Under qp->lock. */
static inline void qp_expire_by(struct qp *qp, nanos at)
{
    schedule_by(&qp->process->schedule, &qp_endpoint(qp)->timer, at);
}

/* The engine's deadline, or when the queue pair's rate or the members of a multicast group let it continue, whichever
 * is sooner. */
nanos qp_deadline(const struct qp *);

/* Returns qp_deadline for the helper, which looks again by then: from now on the helper is woken for deadlines that
 * become sooner. */
nanos qp_watch(struct qp *);

/* Frees the receive of a message that has begun and will not end, before the engine is reset or destroyed; otherwise a
 * shared queue would lose its place for ever. */
void qp_give_back_receive(struct qp *);
