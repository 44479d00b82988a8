/* The part of a queue pair for the calls of libmlx5: the builders of mlx5dv_wr_post(3), and a doorbell register. */
#pragma once

#include <infiniband/mlx5dv.h>

#include "verbs/qp/qp_part.h"

struct mlx5_part {
    struct qp_part part;
    struct mlx5dv_qp_ex builders;
    struct qp *qp;
    void *_Atomic page; /* of its doorbell register; or NULL */

    /* The key that is being configured. Of the thread that owns the batch. */
    unsigned setters; /* that are still missing */
};

/* The part of the queue pair, which is made where it is missing. NULL: no memory. */
struct mlx5_part *mlx5_part_of(struct qp *);

/* Fills in the builders. */
void mlx5_fill_builders(struct mlx5dv_qp_ex *);

/* Executes WORK_VENDOR_CONFIGURE and WORK_VENDOR_COPY. Under qp->lock. */
enum ibv_wc_status mlx5_run(struct qp *, const struct send_wqe *, enum reason *);

/* A page of registers, whose stores nobody notices, and where in it the first register is; NULL: no memory. */
void *mlx5_page_make(void);
void mlx5_page_free(void *);
enum { MLX5_PAGE = 4096, MLX5_REGISTER = 0x800 };
