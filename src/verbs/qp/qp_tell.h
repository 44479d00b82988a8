/* Reports to the user on a queue pair whose packets are refused, in words: each a line of the log (diag/log.h). All
 * under qp->lock, except where noted. */
#pragma once

#include "calls/questions.h"
#include "diag/diag.h"
#include "verbs/qp/qp_datapath.h"
#include "wire/packet.h"

/* Sets the state of the queue pair. */
static inline void qp_enter(struct qp *qp, enum ibv_qp_state to)
{
    enum ibv_qp_state from = qp->state;
    qp->state = (uint8_t)to;
    if (from != to)
        traffic_note(qp_flow(qp), EVENT_QP_STATE, from, to);
}

/* Reports and counts a packet that was dropped or refused; `reason` is the engine's. */
void qp_tell_dropped(struct qp *, const struct packet *, enum reason);

/* Counts a datagram that is lost before it leaves. */
void qp_tell_lost(struct qp *, enum reason, uint32_t psn);

/* Reports refused memory that a peer named: the key, the address, the requested access and the region. */
void qp_tell_memory(struct qp *, uint32_t rkey, uint64_t address, uint32_t length, unsigned access, enum reason);

/* Keeps the reason if it is the first error's: `softverbs show` reports it as the cause of the failure. */
void qp_tell_cause(struct qp *, enum reason);

/* Forgets errors, as the queue pair is reset or destroyed. */
void qp_tell_nothing(struct qp *);

/* What is known of work that failed: "", or text that begins with ", ". */
struct tell_numbers {
    char text[640];
    bool cause; /* the text ends with the cause, which replaces the reason's sentence */
};

/* Reports the end of a work request or receive; the line ends with the numbers. `softverbs show` names the first
 * error. */
void qp_tell_end(struct qp *, const char *what, uint64_t id, enum ibv_wc_status, enum reason,
                 const struct tell_numbers *);

/* Returns what was found out about the peer of a work request that ended with this status (ask/qp_inquiry.h), until the
 * queue pair is reset or destroyed; NULL: nothing. Under qp->lock. */
const char *qp_tell_known(const struct qp *, unsigned status);

enum { QP_TELL_ENDED = CALLS_WORDS_OF_END };

/* Writes what the log's line on this end has after "ends in": the status, the numbers of what was refused, the cause. A
 * queue pair of NULL is not known, and has no numbers. Under qp->lock. */
void qp_tell_ended(const struct qp *, uint64_t id, unsigned status, unsigned reason, char text[QP_TELL_ENDED]);

enum { QP_TELL_UNCHANGED = 64 };

/* Writes, for the line of a call that the state does not allow, that the ibv_modify_qp before it was refused for this
 * reason (qp_told.unchanged); "" for REASON_NONE. Returns `text`, with room for QP_TELL_UNCHANGED bytes. Any thread. */
const char *qp_tell_unchanged(enum reason, char *text);

/* Reports that no port of this host has the LID. */
void qp_tell_no_lid(uint32_t number, uint16_t dlid);
