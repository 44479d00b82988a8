/* The part of a queue pair for the calls of libmlx5: the builders of mlx5dv_wr_post(3), and a doorbell register. */
#pragma once

#include <infiniband/mlx5dv.h>

#include "base/container.h"
#include "verbs/qp/qp_part.h"

struct send_ring;

struct mlx5_part {
    struct qp_part part;
    struct mlx5dv_qp_ex builders;
    struct qp *qp;
    void *_Atomic page;             /* of its doorbell register; or NULL */
    struct send_ring *_Atomic ring; /* its queues in memory; or NULL */

    /* The key that is being configured. Of the thread that owns the batch. */
    unsigned setters; /* that are still missing */
};

/* The part of the queue pair, which is made where it is missing. NULL: no memory. */
struct mlx5_part *mlx5_part_of(struct qp *);

/* Fills in the builders. */
void mlx5_fill_builders(struct mlx5dv_qp_ex *);

/* Executes WORK_VENDOR_CONFIGURE and WORK_VENDOR_COPY. Under qp->lock. */
enum ibv_wc_status mlx5_run(struct qp *, const struct send_wqe *, enum reason *);

/* The queues in memory of a queue pair; NULL: it has none. */
static inline struct send_ring *mlx5_ring_of(struct qp *qp)
{
    struct qp_part *part = qp_part_of(qp);
    return part ? atomic_load(&container_of(part, struct mlx5_part, part)->ring) : NULL;
}

/* The bytes of an entry of a completion queue, which the program has asked for. `attr` may be NULL. */
long mlx5_entry_size(const struct mlx5dv_cq_init_attr *attr);

/* A page of registers, whose stores nobody notices, and where in it the first register is; NULL: no memory. */
void *mlx5_page_make(void);
void mlx5_page_free(void *);
enum { MLX5_PAGE = 4096, MLX5_REGISTER = 0x800 };
