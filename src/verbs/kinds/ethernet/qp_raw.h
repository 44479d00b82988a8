/* What is particular to raw packet queue pairs (IBV_QPT_RAW_PACKET). No privilege is needed for one, as nothing leaves
 * the host: the frames of a user reach only processes of that user. */
#ifndef VERBS_KINDS_ETHERNET_QP_RAW_H
#define VERBS_KINDS_ETHERNET_QP_RAW_H

#include "verbs/qp/qp.h"

/* The bits of comp_mask that only raw packet queue pairs have. */
enum { QP_RAW_INIT_MASK = IBV_QP_INIT_ATTR_MAX_TSO_HEADER | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH };

/* REASON_NONE, or why such a queue pair can't be made; *error is the errno. Also asked for other types, which can have
 * none of this but the flag that blocks own multicast messages. */
enum reason qp_raw_refuse(const struct ibv_qp_init_attr_ex *, int *error);

/* Does it have work queues instead of queues? */
bool qp_raw_spreads(const struct ibv_qp_init_attr_ex *);

/* Takes over the flags of any queue pair, and what only those of raw packets have. 0 or ENOMEM. */
int qp_raw_fill(struct qp *, const struct ibv_qp_init_attr_ex *);
void qp_raw_release(struct qp *);

/* The options of its engine, once that was initialised. */
unsigned qp_raw_options(const struct qp *);

/* Sends what there is, as long as the links have room. Under qp->lock. */
void qp_raw_transmit(struct qp *);

#endif
