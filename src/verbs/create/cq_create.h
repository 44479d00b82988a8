/* Making and destroying completion queues: ibv_create_cq(3), ibv_create_cq_ex(3), ibv_resize_cq(3). Thread-safe. */
#pragma once

#include "verbs/queue/cq.h"

struct ibv_cq_ex *cq_create(struct ibv_context *, struct ibv_cq_init_attr_ex *); /* NULL and errno */
int cq_destroy(struct ibv_cq *);             /* EBUSY; waits until all events are acknowledged */
int cq_resize(struct ibv_cq *, int entries); /* keeps the queued entries; EINVAL: fewer than these */
