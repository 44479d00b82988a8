/* XRC domains: ibv_open_xrcd(3). Thread-safe.
 *
 * A domain that belongs to an inode is the same for all contexts of a device that open it, in all processes of the
 * host (of one directory): it exists if one of them has it open, and its queue pairs reach the SRQs of all of them
 * (verbs/kinds/xrc/xrc_front.h). */
#pragma once

#include "verbs/object/object.h"

struct process;

/* An opening of an XRC domain. */
struct xrcd {
    struct ibv_xrcd ibv;
    struct object object;
    struct xrc_domain *domain; /* the domain in this process (xrcd.c) */
};

/* The name of a domain on the host: the inode, on one device. */
struct xrcd_key {
    uint32_t device; /* its index */
    uint64_t volume, inode;
};

/* Returns the name of a domain; false: it has no inode, so other processes don't know it. */
bool xrcd_key(const struct xrc_domain *, struct xrcd_key *);
bool xrcd_is(const struct xrc_domain *, const struct xrcd_key *); /* true: the domain has that name */

/* Opens a domain. NULL and errno, as in the kernel: EINVAL wrong attributes, or O_EXCL and it exists; EAGAIN it
 * doesn't exist and O_CREAT is missing; EBADF; EBUSY another process keeps the lock; EOPNOTSUPP unknown bits of
 * comp_mask. */
struct ibv_xrcd *xrcd_open(struct ibv_context *, struct ibv_xrcd_init_attr *);
void xrcd_inherit(struct process *); /* see inherit.h: the host's domains belong to the parent alone */
int xrcd_close(struct ibv_xrcd *);   /* EBUSY while SRQs or queue pairs use it */
