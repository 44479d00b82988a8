/* XRC domains: ibv_open_xrcd(3). Thread-safe.
 *
 * A domain that belongs to an inode is one and the same for all contexts of a device that open it, in all processes of
 * the host (of one directory): whether it exists is a question to all of them, and its queue pairs reach the SRQs of
 * any of them (verbs/kinds/xrc/xrc_front.h). */
#ifndef VERBS_KINDS_XRC_XRCD_H
#define VERBS_KINDS_XRC_XRCD_H

#include "verbs/object/object.h"

/* An XRC domain, as often as it was opened. */
struct xrcd {
    struct ibv_xrcd ibv;
    struct object object;
    struct xrc_domain *domain; /* xrcd.c */
};

/* The name of a domain on the host: the inode, on one device. */
struct xrcd_key {
    uint32_t device; /* its index */
    uint64_t volume, inode;
};

/* False: it belongs to no inode, so other processes don't know it. */
bool xrcd_key(const struct xrc_domain *, struct xrcd_key *);
bool xrcd_is(const struct xrc_domain *, const struct xrcd_key *);

/* NULL and errno, as the kernel has them: EINVAL the attributes, or O_EXCL and it exists; EAGAIN it doesn't exist and
 * O_CREAT is missing; EBADF; EOPNOTSUPP unknown bits of comp_mask. */
struct ibv_xrcd *xrcd_open(struct ibv_context *, struct ibv_xrcd_init_attr *);
void xrcd_inherit(struct process *); /* see inherit.h: the domains of the host are the parent's alone */
int xrcd_close(struct ibv_xrcd *);   /* EBUSY while SRQs or queue pairs use it */

#endif
