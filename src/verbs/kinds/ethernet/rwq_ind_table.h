/* Tables of work queues: ibv_create_rwq_ind_table(3). Thread-safe. */
#pragma once

#include "verbs/kinds/ethernet/rss.h"
#include "verbs/object/object.h"
#include "verbs/qp/wq.h"

enum { WQ_TABLE_MAX = 4096 }; /* entries of an indirection table */

struct ind_table {
    struct ibv_rwq_ind_table ibv;
    struct object object;
    uint32_t count; /* a power of two */
    struct wq *entries[];
};

/* The part of a queue pair that chooses among its queues. */
struct spread {
    struct ind_table *table;
    struct rss_hash hash;
};

struct ibv_rwq_ind_table *rwq_ind_table_create(struct ibv_context *, struct ibv_rwq_ind_table_init_attr *);
int rwq_ind_table_destroy(struct ibv_rwq_ind_table *);

/* Returns the queue pair inside the work queue that gets this frame. */
struct qp *wq_choose(const struct spread *, const struct ether *);
