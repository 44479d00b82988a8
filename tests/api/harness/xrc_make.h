/* Functions that make the objects of tests of XRC. Each is the call with the attributes that it needs: NULL and errno
 * when it is refused. */
#pragma once

#include <infiniband/verbs.h>

/* The domain of the file, -1 for a private one; the flags are open's. */
struct ibv_xrcd *xrc_make_domain(struct ibv_context *, int fd, int flags);

/* Makes an SRQ for `size` receives of one SGE. */
struct ibv_srq *xrc_make_srq(struct ibv_pd *, struct ibv_xrcd *, struct ibv_cq *, uint32_t size);

struct ibv_qp *xrc_make_receiver(struct ibv_context *, struct ibv_xrcd *);

/* A handle of the queue pair with this number, by ibv_open_qp; its qp_context is the context. */
struct ibv_qp *xrc_make_handle(struct ibv_context *, struct ibv_xrcd *, uint32_t number);
