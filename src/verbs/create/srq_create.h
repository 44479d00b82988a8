/* Making, changing and destroying shared receive queues: ibv_create_srq(3), ibv_modify_srq(3), ibv_post_srq_recv(3).
 * Thread-safe. */
#pragma once

#include "verbs/queue/srq.h"

/* NULL and errno; sets srq_limit of the attributes to 0. */
struct ibv_srq *srq_create(struct ibv_pd *, struct ibv_srq_init_attr *);
/* ibv_create_srq_ex(3): basic, with tag matching (srq_tags.h), or for XRC (xrc.h). */
struct ibv_srq *srq_create_ex(struct ibv_context *, struct ibv_srq_init_attr_ex *);
/* EINVAL: not for XRC, so it has no number. A device of mlx5 answers for each, as programs of DC ask (perftest). */
int srq_get_number(struct ibv_srq *, uint32_t *);
int srq_destroy(struct ibv_srq *);
int srq_modify(struct ibv_srq *, struct ibv_srq_attr *, int mask);
int srq_query(struct ibv_srq *, struct ibv_srq_attr *);
int srq_post(struct ibv_srq *, struct ibv_recv_wr *, struct ibv_recv_wr **bad);
