/* Queue pairs in multicast groups: ibv_attach_mcast(3), ibv_detach_mcast(3). Thread-safe. */
#pragma once

#include <infiniband/verbs.h>

struct qp;

int qp_attach(struct ibv_qp *, const union ibv_gid *, uint16_t lid);
int qp_detach(struct ibv_qp *, const union ibv_gid *, uint16_t lid);

/* Detaches the queue pair from all groups, as its context is being closed. */
void qp_leave_groups(struct qp *);
