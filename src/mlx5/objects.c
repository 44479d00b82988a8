/* mlx5dv_init_obj(3): what the device has in the adapter's form. */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/device.h"
#include "config/link_layer.h"
#include "events/refusal.h"
#include "mlx5/answers.h"
#include "mlx5/mlx5.h"
#include "mlx5/part.h"
#include "verbs/context/device.h"
#include "verbs/object/domain.h"
#include "verbs/send/ah.h"

/* --- queue pairs */

static void *find_page(struct mlx5_part *part)
{
    void *page = atomic_load(&part->page), *none = NULL;
    if (page || !(page = mlx5_page_make()))
        return page;
    if (atomic_compare_exchange_strong(&part->page, &none, page))
        return page;
    mlx5_page_free(page); /* another thread was first */
    return none;
}

/* Only the doorbell register: it belongs to this queue pair alone, and nothing notices a store. */
static int describe_qp(struct ibv_qp *ibv, struct mlx5dv_qp *qp)
{
    struct mlx5_part *part = mlx5_part_of(qp_of(ibv));
    char *page = part ? find_page(part) : NULL;
    if (!page)
        return ENOMEM;
    *qp = (struct mlx5dv_qp){.bf = {.reg = page + MLX5_REGISTER}};
    return 0;
}

/* --- address handles */

static void put_network(struct mlx5_wqe_av *av, const struct ibv_ah_attr *attr)
{
    enum { IS_GLOBAL = 30, INDEX = 20 };
    const struct ibv_global_route *route = &attr->grh;
    if (!attr->is_global)
        return;
    av->tclass = route->traffic_class;
    av->hop_limit = route->hop_limit;
    av->grh_gid_fl = htobe32(1u << IS_GLOBAL | (uint32_t)route->sgid_index << INDEX | (route->flow_label & 0xfffff));
    memcpy(av->rgid, route->dgid.raw, sizeof av->rgid);
}

/* The source port of a datagram follows from its flow label, or is the first of those that RoCE has. */
static uint16_t source_port(const struct ibv_ah_attr *attr)
{
    enum { FIRST = 0xc000 };
    return (uint16_t)(FIRST | ((attr->grh.flow_label ^ attr->grh.flow_label >> 14) & 0x3fff));
}

static void put_link(struct mlx5_wqe_av *av, const struct ah *ah)
{
    struct ibv_ah_attr attr = ah->attr;
    uint16_t vlan;
    if (ah->infiniband) {
        av->stat_rate_sl = (uint8_t)(attr.static_rate << 4 | attr.sl);
        av->fl_mlid = attr.src_path_bits & 0x7f;
        av->rlid = htobe16(attr.dlid);
        return;
    }
    av->stat_rate_sl = (uint8_t)(attr.static_rate << 4 | attr.sl << 1);
    av->rlid = htobe16(source_port(&attr));
    if (device_resolve_mac(ah->ibv.context, &attr, av->rmac, &vlan))
        memset(av->rmac, 0, sizeof av->rmac); /* of another host: the kernel resolves it with each datagram */
}

static struct mlx5_wqe_av *make_form(const struct ah *ah)
{
    enum { EXTENDED = 1u << 31 }; /* of 48 bytes */
    struct mlx5_wqe_av *av = calloc(1, sizeof *av);
    if (!av)
        return NULL;
    av->dqp_dct = htobe32(EXTENDED);
    put_link(av, ah);
    put_network(av, &ah->attr);
    return av;
}

static int describe_ah(struct ibv_ah *ibv, struct mlx5dv_ah *to)
{
    struct ah *ah = (struct ah *)ibv;
    void *none = NULL, *form = atomic_load(&ah->form);
    if (!form) {
        form = make_form(ah);
        if (!form)
            return ENOMEM;
        if (!atomic_compare_exchange_strong(&ah->form, &none, form)) {
            free(form);
            form = none;
        }
    }
    *to = (struct mlx5dv_ah){.av = form};
    return 0;
}

/* --- all */

static int describe_pd(struct ibv_pd *ibv, struct mlx5dv_pd *pd)
{
    *pd = (struct mlx5dv_pd){.pdn = ibv->handle};
    return 0;
}

/* The queues of this device are not in memory. */
static int refuse_queues(uint64_t types)
{
    const uint64_t known = MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ | MLX5DV_OBJ_SRQ | MLX5DV_OBJ_RWQ | MLX5DV_OBJ_DM |
                           MLX5DV_OBJ_AH | MLX5DV_OBJ_PD | MLX5DV_OBJ_DEVX;
    const uint64_t built = MLX5DV_OBJ_QP | MLX5DV_OBJ_AH | MLX5DV_OBJ_PD;
    if (!(types & known))
        return mlx5_refuse_bits("obj_type", types);
    return types & known & ~built ? mlx5_lacks("queues in memory") : 0;
}

int own_mlx5dv_init_obj(struct mlx5dv_obj *obj, uint64_t obj_type)
{
    int error = mlx5_check();
    if (!error)
        error = refuse_queues(obj_type);
    if (!error && obj_type & MLX5DV_OBJ_QP)
        error = describe_qp(obj->qp.in, obj->qp.out);
    if (!error && obj_type & MLX5DV_OBJ_AH)
        error = describe_ah(obj->ah.in, obj->ah.out);
    if (!error && obj_type & MLX5DV_OBJ_PD)
        error = describe_pd(obj->pd.in, obj->pd.out);
    return error;
}
