/* Queue pairs of type XRC_RECV are shared: each call that makes or opens one (ibv_open_qp(3)) gets a handle, and the
 * queue pair ends with its last handle. A handle is a struct qp that uses only the public part, `object`, `process`,
 * `kind`, `number`, `uses.parent`, `xrc` and the count of events; it stays in RESET, so nothing can be posted to it.
 * Each handle gets the queue pair's asynchronous events, in its own context. Thread-safe. */
#pragma once

#include "verbs/kinds/xrc/xrcd.h"

struct qp;

/* Hooks of the kind; see verbs/qp/kind.h. */
int xrc_recv_refuse(const struct context *, const struct ibv_qp_init_attr_ex *);
int xrc_recv_fill(struct qp *, const struct ibv_qp_init_attr_ex *);

/* Makes the first handle of a new queue pair. NULL and errno; then the queue pair is gone, too. */
struct ibv_qp *xrc_recv_create(struct qp *, const struct ibv_qp_init_attr_ex *);

/* Makes another handle. NULL and errno; EINVAL when the domain has no such queue pair in this process. */
struct ibv_qp *xrc_recv_open(struct ibv_context *, struct ibv_qp_open_attr *);

/* Destroys a handle, and waits for acknowledgements as ibv_destroy_qp(3) says. 0 or ENOENT. */
int xrc_recv_close(struct qp *handle);
