/* The data path of a queue pair: its engine, and what carries packets between that and the links. */
#ifndef VERBS_QP_QP_DATAPATH_H
#define VERBS_QP_QP_DATAPATH_H

#include "verbs/qp/qp.h"

/* Each points at a part of the data path of a queue pair, through which a const one can't be changed. */
#define qp_owner(qp) (&(qp)->owner)       /* what the engine calls; life/qp_owner.h */
#define qp_endpoint(qp) (&(qp)->endpoint) /* what the loop calls; life/qp_endpoint.h */
#define qp_flow(qp) (&(qp)->flow)
#define qp_engine(qp) (&(qp)->engine)
#define qp_tags(qp) (&(qp)->tags)

static inline struct qp *qp_of_endpoint(struct endpoint *endpoint)
{
    return container_of(endpoint, struct qp, endpoint);
}

static inline struct qp *qp_of_owner(struct engine_owner *owner)
{
    return container_of(owner, struct qp, owner);
}

#endif
