/* ibv_modify_qp(3), ibv_query_qp(3). Thread-safe. */
#ifndef VERBS_LIFE_QP_MODIFY_H
#define VERBS_LIFE_QP_MODIFY_H

#include <infiniband/verbs.h>
#include <stdbool.h>

struct endpoint;
struct qp;

int qp_modify(struct ibv_qp *, struct ibv_qp_attr *, int mask);
int qp_query(struct ibv_qp *, struct ibv_qp_attr *, int mask, struct ibv_qp_init_attr *);

/* The way to the peer is given back; one on this host is looked for anew by the next packet. Under qp->lock, or where
 * no other thread knows the queue pair any more. */
void qp_forget_peer(struct qp *);

/* Rules for packets have come, which also what there is obeys: the queue pair of this endpoint sends payloads of new
 * work and ACKs in packets from now on, and has no more packets on their way than where faults are from the beginning.
 * `fresh`: they are the first. */
void qp_meet_rules(struct endpoint *, bool fresh);

#endif
