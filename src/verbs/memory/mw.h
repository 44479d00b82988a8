/* Memory windows: ibv_alloc_mw(3), ibv_bind_mw(3), IBV_WR_BIND_MW, IBV_WR_LOCAL_INV. The device offers type 1 and type
 * 2B: a window of type 2 serves only the queue pair that bound it. Thread-safe unless said otherwise. */
#ifndef VERBS_MEMORY_MW_H
#define VERBS_MEMORY_MW_H

#include <sys/uio.h>

#include "base/lock.h"
#include "diag/diag.h"
#include "transport/send_queue.h"
#include "verbs/memory/rkeys.h"
#include "verbs/object/object.h"

/* A memory window; its region is empty while it is not bound. */
struct mw {
    struct ibv_mw ibv;
    struct object object;
    struct object *parent; /* what it counts as a use of: its PD or parent domain */
    struct lock lock;      /* all below: type 1 windows are used by many queue pairs */
    struct region region;  /* its pd never changes */
    struct mr *mr;         /* bound to; NULL: not bound */
    struct qp *qp;         /* type 2: the queue pair that bound it, which alone may use it */
    LIST_ENTRY(mw) bound;  /* in qp->windows */
};

struct ibv_mw *mw_allocate(struct ibv_pd *, enum ibv_mw_type);
/* A bound window is unbound first. */
int mw_deallocate(struct ibv_mw *);

/* ibv_bind_mw(3), for windows of type 1: 0 or an errno. The window shows its new key at once. */
int mw_post_bind(struct ibv_qp *, struct ibv_mw *, struct ibv_mw_bind *);

/* Below: under qp->lock. */

/* Fills the parameters of IBV_WR_BIND_MW into work whose head is filled, or says why they can't be right. The low eight
 * bits of the key are the program's, the rest the window's, whatever the program has there. The public window shows its
 * new key from then on. */
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

/* The queue pair will be destroyed: what it has bound is unbound. */
void mw_leave(struct qp *);

#endif
