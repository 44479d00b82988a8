/* Work whose end a rule of a script decides (`complete`), in front of another libibverbs. The library does the work.
 * The completion that the program polls has the status of the rule; then the queue pair is moved to ERR, and what it
 * completes in the same completion queue is flushed: of an extended queue, if that was made with
 * IBV_WC_EX_WITH_QP_NUM. A send is signalled for that. Thread-safe. */
#pragma once

#include "script/reach.h"

/* For struct script_reach. */
void turned_prepare(void);
int turned_post_send(struct ibv_qp *, struct ibv_send_wr *, struct script_end, struct ibv_send_wr **bad);
int turned_post_recv(struct ibv_qp *, struct ibv_recv_wr *, struct script_end, struct ibv_recv_wr **bad);
int turned_post_srq_recv(struct ibv_srq *, struct ibv_recv_wr *, struct script_end, struct ibv_recv_wr **bad);
void turned_build_begin(struct ibv_qp_ex *, struct script_end);
void turned_build_end(struct ibv_qp_ex *, enum script_batch);

/* Whether a completion of this queue pair was turned into an error since it was in RESET. */
bool turned_has(const struct ibv_qp *);

/* The vendor_err of the entry at which this queue's iterator is; `own`: the library's answer. */
uint32_t turned_vendor(const struct ibv_cq_ex *, uint32_t own);

/* Before the queue pair is destroyed or moved to RESET: it is not moved to ERR from now on. Waits for a move. */
void turned_leave(const struct ibv_qp *);
/* After that. `left`: the queue pair is in RESET, or gone; what it has completed before is polled with the program's
 * wr_id. */
void turned_left(const struct ibv_qp *, bool left);

/* Before the context is closed. */
void turned_close(const struct ibv_context *);
