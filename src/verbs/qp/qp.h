/* Queue pairs: ibv_create_qp(3), ibv_modify_qp(3), ibv_query_qp(3), ibv_post_send(3), ibv_post_recv(3). Thread-safe. */
#ifndef VERBS_QP_QP_H
#define VERBS_QP_QP_H

#include "base/container.h"
#include "process/port_state.h"
#include "verbs/object/object.h"

enum { QP_REFERENCE_FROM = 65536 }; /* from here on one process_vm_readv costs less than two copies through the ring */

/* NULL and errno: EINVAL what can't be, ENOMEM what is too much, EOPNOTSUPP what is not offered. Writes the true
 * capacities back to attr->cap. */
struct ibv_qp *qp_create(struct ibv_context *, struct ibv_qp_init_attr_ex *);
int qp_destroy(struct ibv_qp *);
int qp_modify(struct ibv_qp *, const struct ibv_qp_attr *, int mask);
int qp_query(struct ibv_qp *, struct ibv_qp_attr *, int mask, struct ibv_qp_init_attr *);
int qp_post_send(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **bad);
int qp_post_receive(struct ibv_qp *, struct ibv_recv_wr *, struct ibv_recv_wr **bad);
int qp_attach(struct ibv_qp *, const union ibv_gid *, uint16_t lid);
int qp_detach(struct ibv_qp *, const union ibv_gid *, uint16_t lid);

/* All that it is attached to: its context is being closed. */
void qp_leave_groups(struct qp *);

/* The functions that the transport calls; see transport/owner.h. */
extern const struct owner_operations qp_owner_operations;

static inline struct qp *qp_of(struct ibv_qp *ibv)
{
    return (struct qp *)ibv;
}

/* RC, XRC_SEND and XRC_RECV: their engine is `rc`. */
static inline bool qp_is_reliable(const struct qp *qp)
{
    return qp->type == IBV_QPT_RC || qp->type == IBV_QPT_XRC_SEND || qp->type == IBV_QPT_XRC_RECV;
}

static inline struct qp *qp_of_endpoint(struct endpoint *endpoint)
{
    return container_of(endpoint, struct qp, endpoint);
}

/* Is the port of its device down? Then what it sends is lost, and so is what comes for it. */
static inline bool qp_port_is_down(const struct qp *qp)
{
    return port_state_down(qp->process, qp->port);
}

/* Before anybody else knows the queue pair, or the one inside a work queue. */
void qp_begin_endpoint(struct qp *, const struct device *);

/* A deadline of the queue pair: it is looked after at this time at the latest. Under qp->lock. */
static inline void qp_expire_by(struct qp *qp, nanos at)
{
    schedule_by(&qp->process->schedule, &qp->endpoint.timer, at);
}

/* For qp_shared.c. A queue pair of type XRC_RECV ends with its last handle: qp_retire under process->control, so that
 * nobody but the caller knows it, then qp_release. */
void qp_retire(struct qp *);
void qp_release(struct qp *);

/* ibv_destroy_qp(3): its events that nobody fetched go, those that were fetched must be acknowledged. */
void qp_wait_for_acknowledgements(struct qp *);

/* Below: under qp->lock. */

/* Sends what the engine has, as long as the link has room; the rest goes on when there is some. */
void qp_transmit(struct qp *, nanos now);
/* The same for who stands between guard_begin and guard_end already (link/guard.h). */
void qp_transmit_guarded(struct qp *, nanos now);

/* The queue pair ends: what it owes its peer leaves now. The program was told of messages whose ACK still waits to go
 * along with a request (progress.h). */
void qp_settle(struct qp *);

/* To the error state, as the program asked for: the engine's work and the receives are flushed. */
void qp_flush(struct qp *);

/* To the error state by an error that the engine didn't see: the whole queue pair is flushed and `event` raised. */
void qp_fail(struct qp *, enum ibv_event_type event);

/* Peers that may be reading memory of this queue pair by reference are told to forget it. After the return the program
 * may have its memory back. */
void qp_withdraw_references(struct qp *);

/* The way to the peer is given back; one on this host is looked for anew by the next packet. Without the lock where
 * nobody else knows the queue pair any more. */
void qp_forget_peer(struct qp *);

/* Flushes the receive queue; on an SRQ raises LAST_WQE_REACHED once. The state is ERR already. */
void qp_flush_receives(struct qp *);

/* Calls the engine's function of that name, whichever engine it is. */
struct send_queue *qp_send_queue(struct qp *);
void qp_posted(struct qp *);
void qp_receive(struct qp *, const struct packet *, nanos now);
bool qp_has_output(const struct qp *);
nanos qp_engine_deadline(const struct qp *);

/* That of the engine, or when the rate of the queue pair or the members of a multicast group let it go on, whichever is
 * sooner. */
nanos qp_deadline(const struct qp *);

/* The same as qp_deadline, for the helper, which looks again by then: from now on it is told of what becomes sooner. */
nanos qp_watch(struct qp *);

/* Before the engine is reset or goes: the receive of a message that has begun and will not end is free again, or a
 * shared queue would lose its place for ever. */
void qp_give_back_receive(struct qp *);

#endif
