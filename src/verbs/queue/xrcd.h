/* XRC domains: ibv_open_xrcd(3). Thread-safe.
 *
 * A domain that belongs to an inode is one and the same for all contexts of a device in this process that open it.
 * Whether it exists is a question to the whole host (other processes of the user may have it open), but queue pairs and
 * SRQs of a domain reach each other within one process only; see xrc.h. */
#ifndef VERBS_QUEUE_XRCD_H
#define VERBS_QUEUE_XRCD_H

#include "verbs/object/object.h"

/* An XRC domain, as often as it was opened. */
struct xrcd {
    struct ibv_xrcd ibv;
    struct object object;
    struct xrc_domain *domain; /* xrcd.c */
};

/* NULL and errno, as the kernel has them: EINVAL the attributes, or O_EXCL and it exists; EAGAIN it doesn't exist and
 * O_CREAT is missing; EBADF; EOPNOTSUPP unknown bits of comp_mask. */
struct ibv_xrcd *xrcd_open(struct ibv_context *, struct ibv_xrcd_init_attr *);
void xrcd_inherit(struct process *); /* see inherit.h: the domains of the host are the parent's alone */
int xrcd_close(struct ibv_xrcd *);   /* EBUSY while SRQs or queue pairs use it */

#endif
