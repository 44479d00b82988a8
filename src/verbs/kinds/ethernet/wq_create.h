/* Making, changing and destroying work queues: ibv_create_wq(3), ibv_modify_wq(3). Thread-safe. */
#pragma once

#include "verbs/qp/wq.h"

struct calls;

struct ibv_wq *wq_create(struct ibv_context *, struct ibv_wq_init_attr *);
int wq_modify(struct ibv_wq *, struct ibv_wq_attr *);
int wq_destroy(struct ibv_wq *);

/* Sets ibv_post_wq_recv(3) as the layers' lowest call. */
void wq_bottom(struct calls *);
