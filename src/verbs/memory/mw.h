/* Memory windows: ibv_alloc_mw(3), ibv_bind_mw(3), IBV_WR_BIND_MW, IBV_WR_LOCAL_INV. The device offers type 1 and type
 * 2B: a window of type 2 serves only the queue pair that bound it. */
#pragma once

#include "base/lock.h"
#include "verbs/memory/rkeys.h"
#include "verbs/object/object.h"

/* A memory window; its region is empty while it is not bound. */
struct mw {
    struct ibv_mw ibv;
    struct object object;
    struct object *parent; /* the object that it uses: its PD or parent domain */
    struct lock lock;      /* guards all below: many queue pairs use a window of type 1 */
    struct region region;  /* its pd never changes */
    struct mr *mr;         /* the region that it is bound to; or NULL */
    struct qp *qp;         /* type 2: the queue pair that bound it, which alone may use it */
    LIST_ENTRY(mw) bound;  /* in qp->windows */
};

static inline struct mw *mw_of(const struct region *region)
{
    return (struct mw *)((char *)region - offsetof(struct mw, region));
}
