/* Work queues: ibv_create_wq(3).
 *
 * Inside, a work queue is a separate queue pair that only receives: it has a number, a lock and a raw engine, and its
 * completions carry its number. Programs never see that queue pair. */
#pragma once

#include <infiniband/verbs.h>

struct qp;

struct wq {
    struct ibv_wq ibv;
    struct qp *queue; /* in the same block of memory */
};
