/* The shared part of the two ways of posting sends: ibv_post_send and the ibv_wr_* builders. Under qp->lock, except
 * post_enter and post_leave. */
#pragma once

#include "base/likely.h"
#include "verbs/qp/qp.h"

/* ibv_post_send(3). Thread-safe. */
int qp_post_send(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **bad);

/* Called around all posting of sends, before any other lock: waits for other threads' batches on this queue pair.
 * False: this thread is in a batch itself, and would wait for ever. */
bool post_enter_batch(struct qp *);

static inline bool post_enter(struct qp *qp)
{
    return likely(!qp->batch.exists) || post_enter_batch(qp);
}

static inline void post_leave(struct qp *qp)
{
    if (unlikely(qp->batch.exists))
        lock_release(&qp->batch.lock);
}

/* Return true if this queue pair can do the operation (enum ibv_wr_opcode) at all, and if it can have inline data. */
bool post_is_legal(const struct qp *, unsigned opcode);
bool post_takes_inline(unsigned opcode);

/* Returns true if work with these flags may be posted: queue pairs without an order want each to signal its end. */
bool post_signals(const struct qp *, unsigned flags);

/* IBV_WR_BIND_MW: checks that work requests may bind this window (its type). */
enum reason post_check_window(const struct ibv_mw *);

/* IBV_WR_TSO: post_check_tso checks the lengths of header and segments; post_set_tso fills the slot (false: it
 * can't). */
enum reason post_check_tso(const struct qp *, uint32_t header, uint32_t mss);
bool post_set_tso(const struct qp *, struct send_wqe *, const void *header, uint16_t length, uint16_t mss);

/* Returns true if work is accepted in the queue pair's state. */
bool post_is_open(const struct qp *);

/* Returns true if the completions of all posted sends were polled. Thread-safe, while no send is posted. */
bool post_all_retired(const struct ibv_qp *);

/* Returns a free slot of `queue`, after `posted` works; NULL: the program has not polled enough completions yet. */
struct send_wqe *post_reserve_in(struct qp *, const struct send_queue *queue, uint32_t posted);

/* post_reserve returns a free slot of the send queue, or NULL; post_commit enters the filled slot, as work that was
 * posted at this time. */
struct send_wqe *post_reserve(struct qp *);
void post_commit(struct qp *, struct send_wqe *, nanos now);

/* Passes committed work to the engine and the link. Between guard_begin and guard_end. */
void post_start(struct qp *, nanos now);

/* Notes a post by this call (qp_posting_calls) that was refused, until a later post is accepted. */
cold void post_note_refused(struct qp *, enum reason, const char *call);

/* Notes a post that was refused, and writes the line of the call (events/refusal.h), whose name and work request are
 * given, with the queue pair's state for the reason and `text`. Sets errno and returns it. */
cold int post_refused(struct qp *, const char *call, uint64_t id, enum reason, const char *text);
