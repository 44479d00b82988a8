/* Making and destroying queue pairs: ibv_create_qp(3), ibv_destroy_qp(3). Thread-safe. */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>

struct qp;
struct qp_kind;

/* NULL and errno: EINVAL impossible or too large attributes, EOPNOTSUPP what is not offered, ENOENT an overwritten
 * handle, ENOMEM. Writes the true capacities back to attr->cap. */
struct ibv_qp *qp_create(struct ibv_context *, struct ibv_qp_init_attr_ex *);
/* Makes a queue pair of this kind, whatever attr->qp_type is. */
struct ibv_qp *qp_create_of(struct ibv_context *, const struct qp_kind *, struct ibv_qp_init_attr_ex *);
int qp_destroy(struct ibv_qp *); /* 0 or an errno: EBUSY, ENOENT */

/* Gives out a number that no queue pair of the process has until it comes back: 0 or an errno. False: the number was
 * not given out so. */
int qp_reserve_number(struct ibv_context *, uint32_t *number);
bool qp_unreserve_number(struct ibv_context *, uint32_t number);

/* Gives the locks of the queue pair back in the child of a fork. */
void qp_inherit(struct qp *);
/* Takes and gives back the lock under which the engine uses memory. Under process->control. */
void qp_quiesce(struct qp *);
