/* Making and destroying queue pairs: ibv_create_qp(3), ibv_destroy_qp(3). Thread-safe. */
#pragma once

#include <infiniband/verbs.h>

struct qp;

/* NULL and errno: EINVAL impossible attributes, ENOMEM too large ones, EOPNOTSUPP what is not offered. Writes the
 * true capacities back to attr->cap. */
struct ibv_qp *qp_create(struct ibv_context *, struct ibv_qp_init_attr_ex *);
int qp_destroy(struct ibv_qp *);

/* Gives the locks of the queue pair back in the child of a fork. */
void qp_inherit(struct qp *);
/* Takes and gives back the lock under which the engine uses memory. Under process->control. */
void qp_quiesce(struct qp *);
