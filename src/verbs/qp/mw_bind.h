/* Binding memory windows to regions, and what their keys stand for. Under qp->lock. */
#ifndef VERBS_QP_MW_BIND_H
#define VERBS_QP_MW_BIND_H

#include "transport/send_queue.h"
#include "verbs/memory/mw.h"
#include <sys/uio.h>

#include "verbs/qp/qp.h"

/* Fills the parameters of IBV_WR_BIND_MW into work whose head is filled, or says why they can't be right. The low eight
 * bits of the key are the program's, the rest the window's, not the program's. The public window shows its new key from
 * then on. */
enum reason mw_describe_bind(struct send_wqe *, struct ibv_mw *, uint32_t rkey, const struct ibv_mw_bind_info *);

/* Work that was described but is not posted after all: if it was a bind, the public window shows the key that it had.
 */
void mw_forget_bind(const struct send_wqe *);

/* Executes IBV_WR_BIND_MW; REASON_NONE or why the work fails. */
enum reason mw_bind(struct qp *, const struct send_wqe *);

/* Invalidates what the key stands for. REASON_INVALIDATE_KEY: this queue pair may not (IBA 10.6.7.2.6: only a bound
 * window of type 2 that it bound). */
enum reason mw_invalidate(struct qp *, uint32_t rkey);

/* The answer of mr_remote for a key of a window. */
enum reason mw_remote(const struct qp *, const struct region *, uint32_t rkey, uint64_t address, uint32_t length,
                      unsigned access, struct iovec *);

/* The queue pair will be destroyed: unbinds the windows that it has bound. */
void mw_leave(struct qp *);

/* The window is bound to nothing. Under mw->lock, and for type 2 under the lock of the queue pair that bound it. */
void mw_unbind(struct mw *);

#endif
