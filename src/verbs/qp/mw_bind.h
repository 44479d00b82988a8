/* Binding memory windows to regions, and the memory of their keys. Under qp->lock. */
#pragma once

#include "transport/send_queue.h"
#include "verbs/memory/mw.h"
#include <sys/uio.h>

#include "verbs/qp/qp.h"

/* Fills the parameters of IBV_WR_BIND_MW into work whose head is filled, or returns why they are wrong. The low eight
 * bits of the key are the program's, the rest is the window's. The public window shows its new key from then on. */
enum reason mw_describe_bind(struct send_wqe *, struct ibv_mw *, uint32_t rkey, const struct ibv_mw_bind_info *);

/* Undoes mw_describe_bind for work that is not posted after all: the public window shows its old key. */
void mw_forget_bind(const struct send_wqe *);

/* Executes IBV_WR_BIND_MW; REASON_NONE or why the work fails. */
enum reason mw_bind(struct qp *, const struct send_wqe *);

/* Invalidates the window of the key, or the indirect region. REASON_INVALIDATE_KEY: this queue pair may not (IBA
 * 10.6.7.2.6: only a window of type 2 that it bound). `by_peer`: a message of its peer asks for it. */
enum reason mw_invalidate(struct qp *, uint32_t rkey, bool by_peer);

/* Does the work of mr_remote (qp_memory.h) for a window's key. */
enum reason mw_remote(const struct qp *, const struct region *, uint32_t rkey, uint64_t address, uint32_t length,
                      unsigned access, struct iovec *);

/* Unbinds the windows that the queue pair has bound, before it is destroyed. */
void mw_leave(struct qp *);

/* Unbinds the window. Under mw->lock, and for type 2 under the lock of the queue pair that bound it. */
void mw_unbind(struct mw *);
