/* Pages of doorbell registers. Nothing rings: the queues of this device are not in memory. Programs compare addresses
 * of registers (SMART), or allocate a page to see whether they can (libvma). */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/mapping.h"
#include "events/refusal.h"
#include "mlx5/answers.h"
#include "mlx5/mlx5.h"
#include "mlx5/part.h"

void *mlx5_page_make(void)
{
    void *page = mapping_make(MLX5_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return page == MAP_FAILED ? NULL : page;
}

void mlx5_page_free(void *page)
{
    if (page)
        munmap(page, MLX5_PAGE);
}

struct mlx5dv_devx_uar *own_mlx5dv_devx_alloc_uar(struct ibv_context *context, uint32_t flags)
{
    int error = mlx5_check();
    bool known = flags <= MLX5DV_UAR_ALLOC_TYPE_NC || flags == MLX5DV_UAR_ALLOC_TYPE_NC_DEDICATED;
    if (!error && !known)
        error = refuse(EOPNOTSUPP, REASON_UNKNOWN_BITS, "flags are 0x%x", flags);
    struct mlx5dv_devx_uar *uar = error ? NULL : calloc(1, sizeof *uar);
    if (error || !uar)
        return refused_null(error ? error : ENOMEM);
    uar->base_addr = mlx5_page_make();
    if (!uar->base_addr) {
        free(uar);
        return refused_null(ENOMEM);
    }
    uar->reg_addr = (char *)uar->base_addr + MLX5_REGISTER;
    return uar;
}

void own_mlx5dv_devx_free_uar(struct mlx5dv_devx_uar *uar)
{
    if (!uar)
        return;
    mlx5_page_free(uar->base_addr);
    free(uar);
}
