/* The builders of extended queue pairs: ibv_wr_post(3), ibv_qp_to_qp_ex(3). A batch is posted whole or not at all.
 *
 * From wr_start to wr_complete or wr_abort a batch holds qp->batch.lock, for which only posting on this queue pair
 * waits, and fills places after the tail of the send queue, which no other thread touches; it is only entered under
 * qp->lock, at the end. If the engine itself posts work (tag matching), the batch is filled in separate memory. */
#pragma once

#include "verbs/qp/qp.h"

/* Returns true if a queue pair of this type may be made with these enum ibv_qp_create_send_ops_flags. */
bool qp_ex_offers(const struct qp_kind *, uint64_t send_ops_flags);

/* Begin the next work request of the batch, for builders of a vendor: an operation that any queue pair with builders
 * may have (WORK_VENDOR_), or one that its kind must have. NULL: the batch is spoilt. qp_ex_spoil spoils it, so that
 * ibv_wr_complete refuses it for this reason. */
struct send_wqe *qp_ex_begin_vendor(struct qp *, unsigned opcode);
struct send_wqe *qp_ex_begin(struct ibv_qp_ex *, enum ibv_wr_opcode);
void qp_ex_spoil(struct qp *, enum reason);

/* Gives a new queue pair its builders. */
void qp_ex_fill(struct qp *);

/* Sets the builders as the layers' lowest calls. */
void qp_ex_bottom(struct calls *);

/* The extended queue pair; NULL unless it was made with send_ops_flags. */
struct ibv_qp_ex *qp_ex_of(struct ibv_qp *);
