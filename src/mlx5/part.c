#include "mlx5/part.h"

#include <stdlib.h>

#include "base/container.h"
#include "mlx5/answers.h"
#include "mlx5/mlx5.h"
#include "mlx5/queues/queues.h"

/* A queue pair that is reset forgets its queues; in other states it may have work now that it could not take before. */
static void moved(struct qp *qp, enum ibv_qp_state to)
{
    struct send_ring *ring = mlx5_ring_of(qp);
    if (ring && to == IBV_QPS_RESET)
        send_ring_clear(ring);
    else if (ring)
        queues_wake(qp->process);
}

static void retire_part(struct qp *qp)
{
    struct send_ring *ring = mlx5_ring_of(qp);
    if (ring)
        queues_remove_ring(qp->process, ring);
}

static void release_part(struct qp_part *part)
{
    struct mlx5_part *mine = container_of(part, struct mlx5_part, part);
    struct send_ring *ring = atomic_load(&mine->ring);
    if (ring)
        send_ring_free(ring);
    mlx5_page_free(mine->page);
    free(mine);
}

struct mlx5_part *mlx5_part_of(struct qp *qp)
{
    struct qp_part *there = qp_part_of(qp);
    if (there)
        return container_of(there, struct mlx5_part, part);
    struct mlx5_part *mine = calloc(1, sizeof *mine);
    if (!mine)
        return NULL;
    mine->part = (struct qp_part){mlx5_run, moved, retire_part, release_part};
    mine->qp = qp;
    mlx5_fill_builders(&mine->builders);
    there = qp_part_set(qp, &mine->part);
    if (there != &mine->part)
        free(mine); /* another thread was first */
    return container_of(there, struct mlx5_part, part);
}

struct mlx5dv_qp_ex *own_mlx5dv_qp_ex_from_ibv_qp_ex(struct ibv_qp_ex *qp)
{
    struct mlx5_part *part = qp ? mlx5_part_of(qp_of(&qp->qp_base)) : NULL;
    return part ? &part->builders : NULL;
}
