/* ibv_modify_qp(3), ibv_query_qp(3). Thread-safe. */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>

struct endpoint;
struct qp;

int qp_modify(struct ibv_qp *, struct ibv_qp_attr *, int mask);
int qp_query(struct ibv_qp *, struct ibv_qp_attr *, int mask, struct ibv_qp_init_attr *);

/* Sets the engine's settings by the attributes and the way. Under qp->lock. */
void qp_configure(struct qp *);

/* Gives back the way to the peer; the next packet looks for a peer on this host anew. Under qp->lock, or when no
 * other thread knows the queue pair any more. */
void qp_forget_peer(struct qp *);

/* Makes the queue pair of this endpoint obey rules for packets that were added: it sends payloads of new work and
 * ACKs in packets from now on, and has no more packets on their way than with faults from the beginning. `fresh`:
 * the rules are the first. */
void qp_meet_rules(struct endpoint *, bool fresh);
