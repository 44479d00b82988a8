/* Making and destroying queue pairs: ibv_create_qp(3), ibv_destroy_qp(3). Thread-safe. */
#ifndef VERBS_LIFE_QP_CREATE_H
#define VERBS_LIFE_QP_CREATE_H

#include <infiniband/verbs.h>

struct qp;

/* NULL and errno: EINVAL what can't be, ENOMEM what is too much, EOPNOTSUPP what is not offered. Writes the true
 * capacities back to attr->cap. */
struct ibv_qp *qp_create(struct ibv_context *, struct ibv_qp_init_attr_ex *);
int qp_destroy(struct ibv_qp *);

/* In the child of a fork: gives the locks of the queue pair back. */
void qp_inherit(struct qp *);
/* Takes and gives back the lock under which the engine uses memory. Under process->control. */
void qp_quiesce(struct qp *);

#endif
