/* Reports to the user on a queue pair whose packets are refused, in words: each a line of the log (diag/log.h). All
 * under qp->lock, except where noted. */
#ifndef VERBS_QP_QP_TELL_H
#define VERBS_QP_QP_TELL_H

#include "diag/diag.h"
#include "verbs/qp/qp_datapath.h"
#include "wire/packet.h"

/* The queue pair has this state from now on. */
static inline void qp_enter(struct qp *qp, enum ibv_qp_state to)
{
    enum ibv_qp_state from = qp->state;
    qp->state = (uint8_t)to;
    if (from != to)
        traffic_note(qp_flow(qp), EVENT_QP_STATE, from, to);
}

/* A packet was dropped or refused; `reason` is the engine's. Counts it, too. */
void qp_tell_dropped(struct qp *, const struct packet *, enum reason);

/* Memory that a peer named was refused: the key, the address, the requested access and the region. */
void qp_tell_memory(struct qp *, uint32_t rkey, uint64_t address, uint32_t length, unsigned access, enum reason);

/* The first such reason is the one by which `softverbs show` says why the queue pair failed. */
void qp_tell_cause(struct qp *, enum reason);

/* The queue pair is reset or destroyed: no error has happened. */
void qp_tell_nothing(struct qp *);

/* A work request or receive ended so; `numbers` stands behind that in the line. The first error is the one that
 * `softverbs show` names. */
void qp_tell_end(struct qp *, const char *what, uint64_t id, enum ibv_wc_status, enum reason, const char *numbers);

enum { QP_TELL_UNCHANGED = 64 };

/* For the line of a call that the state does not allow: that the ibv_modify_qp before it was refused, for this reason
 * (qp_told.unchanged); nothing for REASON_NONE. Returns `text`, which has room for QP_TELL_UNCHANGED bytes. Any thread.
 */
const char *qp_tell_unchanged(enum reason, char *text);

/* No port of this host has the LID. */
void qp_tell_no_lid(uint32_t number, uint16_t dlid);

#endif
