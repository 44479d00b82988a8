/* mlx5dv_init_obj(3): what the device has in the adapter's form. */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/mapping.h"
#include "config/device.h"
#include "config/link_layer.h"
#include "config/settings.h"
#include "events/refusal.h"
#include "mlx5/answers.h"
#include "mlx5/mlx5.h"
#include "mlx5/part.h"
#include "mlx5/queues/addresses.h"
#include "mlx5/queues/queues.h"
#include "mlx5/queues/receive_ring.h"
#include "mlx5/queues/tag_ring.h"
#include "profile/profile.h"
#include "verbs/context/device.h"
#include "verbs/kinds/srq_tags.h"
#include "verbs/memory/dm.h"
#include "verbs/object/domain.h"
#include "verbs/send/ah.h"
#include "wire/bytes.h"

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
static int describe_register(struct ibv_qp *ibv, struct mlx5dv_qp *qp)
{
    struct mlx5_part *part = mlx5_part_of(qp_of(ibv));
    char *page = part ? find_page(part) : NULL;
    if (!page)
        return ENOMEM;
    *qp = (struct mlx5dv_qp){.bf = {.reg = page + MLX5_REGISTER}};
    return 0;
}

static bool has_queues(void)
{
    return profile_has_queues(setting_profile());
}

static int feed_receives(struct qp *qp, const struct mlx5dv_qp *described)
{
    const struct receive_ring_form form = {.memory = described->rq.buf,
                                           .count = described->rq.wqe_cnt,
                                           .stride = described->rq.stride,
                                           .record = (_Atomic uint32_t *)(void *)described->dbrec};
    return form.count ? receive_ring_feed(&qp->receives.own, &form) : 0;
}

/* Makes the queues, which the part has only when the helper knows of them. */
static int make_ring(struct qp *qp, struct mlx5_part *part)
{
    struct send_ring *ring = send_ring_make(qp), *none = NULL;
    struct mlx5dv_qp described = {0};
    if (!ring)
        return ENOMEM;
    int error = atomic_compare_exchange_strong(&part->ring, &none, ring) ? 0 : EBUSY; /* two threads describe it */
    if (error) {
        send_ring_free(ring);
        return error;
    }
    error = queues_enter_ring(qp->object.context, ring);
    if (error) {
        atomic_store(&part->ring, NULL);
        send_ring_free(ring);
        return error;
    }
    send_ring_describe(ring, &described);
    return feed_receives(qp, &described);
}

static int describe_qp(struct ibv_qp *ibv, struct mlx5dv_qp *to)
{
    struct qp *qp = qp_of(ibv);
    if (!has_queues())
        return describe_register(ibv, to);
    if (qp->traits & (QP_ETHERNET | QP_SHARED | QP_UNORDERED))
        return mlx5_lacks("queues in memory of this type of queue pairs");
    struct mlx5_part *part = mlx5_part_of(qp);
    int error = part ? queues_begin(qp->object.context) : ENOMEM;
    if (!error && !atomic_load(&part->ring))
        error = make_ring(qp, part);
    if (!error)
        send_ring_describe(atomic_load(&part->ring), to);
    return error;
}

/* --- completion queues */

/* The size of entries that the program has asked for is in the CQ, if mlx5dv_create_cq made it. */
static int describe_cq(struct ibv_cq *ibv, struct mlx5dv_cq *to)
{
    struct cq *cq = (struct cq *)ibv;
    struct cq_memory *memory = cq_memory_of(cq);
    int error = memory ? 0 : queues_begin(cq->object.context);
    if (!error && !memory) {
        memory = cq_memory_make(
            cq, (uint32_t)(cq->vendor[CQ_VENDOR_SIZE] ? cq->vendor[CQ_VENDOR_SIZE] : (uint64_t)mlx5_entry_size(NULL)));
        if (!memory)
            return errno;
        queues_enter_memory(cq->object.context, memory);
    }
    if (!error)
        cq_memory_describe(memory, to);
    return error;
}

/* --- shared receive queues */

static int feed_shared(struct srq *srq)
{
    enum { LINE = 64, LINK = 16, ELEMENT = 16, LEAST = 32 };
    uint32_t count = 1, stride = LEAST;
    while (count < srq->queue.capacity + 1)
        count *= 2;
    while (stride < LINK + ELEMENT * srq->queue.sge_max)
        stride *= 2;
    size_t size = (size_t)count * stride + LINE;
    uint8_t *memory = mapping_make(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return ENOMEM;
    struct receive_ring_form form = {
        memory,         count,         stride,      (_Atomic uint32_t *)(void *)(memory + size - LINE),
        .linked = true, .owned = true, .size = size};
    for (uint32_t i = 0; i < count; i++)
        bytes_put16(memory + (size_t)i * stride + 2, (uint16_t)((i + 1) & (count - 1)));
    if (srq->tags)
        form.tags = tag_places_make(srq_tags_count(srq));
    int error = srq->tags && !form.tags ? ENOMEM : receive_ring_feed(&srq->queue, &form);
    if (error) {
        munmap(memory, size);
        free(form.tags);
    } else if (srq->tags) {
        srq->cq->vendor[CQ_VENDOR_TAGS] = true;
    }
    return error;
}

static int describe_srq(struct ibv_srq *ibv, struct mlx5dv_srq *to)
{
    struct srq *srq = (struct srq *)ibv;
    uint64_t asked = to->comp_mask;
    int error = queues_begin(srq->object.context);
    if (!error && !receive_ring_of(&srq->queue))
        error = feed_shared(srq);
    if (error)
        return error;
    const struct receive_ring_form *form = receive_ring_of(&srq->queue);
    *to = (struct mlx5dv_srq){.buf = form->memory,
                              .dbrec = (__be32 *)(uintptr_t)form->record,
                              .stride = form->stride,
                              .tail = form->count - 1,
                              .comp_mask = asked & MLX5DV_SRQ_MASK_SRQN,
                              .srqn = srq->object.handle & 0xffffff};
    return 0;
}

/* --- device memory */

static int describe_dm(struct ibv_dm *ibv, struct mlx5dv_dm *to)
{
    const struct dm *dm = dm_of(ibv);
    uint64_t asked = to->comp_mask;
    *to = (struct mlx5dv_dm){.buf = dm->memory, .length = dm->length, .comp_mask = asked & MLX5DV_DM_MASK_REMOTE_VA};
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
    return has_queues() ? addresses_keep(ah) : 0;
}

/* --- all */

static int describe_pd(struct ibv_pd *ibv, struct mlx5dv_pd *pd)
{
    *pd = (struct mlx5dv_pd){.pdn = ibv->handle};
    return 0;
}

static int refuse_types(uint64_t types)
{
    const uint64_t known = MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ | MLX5DV_OBJ_SRQ | MLX5DV_OBJ_RWQ | MLX5DV_OBJ_DM |
                           MLX5DV_OBJ_AH | MLX5DV_OBJ_PD | MLX5DV_OBJ_DEVX;
    const uint64_t queues = MLX5DV_OBJ_CQ | MLX5DV_OBJ_SRQ | MLX5DV_OBJ_DM;
    const uint64_t built = MLX5DV_OBJ_QP | MLX5DV_OBJ_AH | MLX5DV_OBJ_PD | (has_queues() ? queues : 0);
    if (!(types & known))
        return mlx5_refuse_bits("obj_type", types);
    return types & known & ~built ? mlx5_lacks("queues in memory") : 0;
}

int own_mlx5dv_init_obj(struct mlx5dv_obj *obj, uint64_t obj_type)
{
    int error = mlx5_check();
    if (!error)
        error = refuse_types(obj_type);
    if (!error && obj_type & MLX5DV_OBJ_QP)
        error = describe_qp(obj->qp.in, obj->qp.out);
    if (!error && obj_type & MLX5DV_OBJ_CQ)
        error = describe_cq(obj->cq.in, obj->cq.out);
    if (!error && obj_type & MLX5DV_OBJ_SRQ)
        error = describe_srq(obj->srq.in, obj->srq.out);
    if (!error && obj_type & MLX5DV_OBJ_DM)
        error = describe_dm(obj->dm.in, obj->dm.out);
    if (!error && obj_type & MLX5DV_OBJ_AH)
        error = describe_ah(obj->ah.in, obj->ah.out);
    if (!error && obj_type & MLX5DV_OBJ_PD)
        error = describe_pd(obj->pd.in, obj->pd.out);
    return error;
}
