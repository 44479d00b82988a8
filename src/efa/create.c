/* Making queue pairs and completion queues of an EFA: efadv_create_qp_ex(3), efadv_create_driver_qp(3),
 * efadv_create_cq(3). */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "config/device.h"
#include "config/settings.h"
#include "efa/answers.h"
#include "efa/efa.h"
#include "events/refusal.h"
#include "profile/profile.h"
#include "verbs/create/cq_create.h"
#include "verbs/kinds/srd/srd.h"
#include "verbs/life/qp_create.h"
#include "verbs/object/context.h"
#include "verbs/qp/kind.h"
#include "verbs/queue/cq.h"

/* --- queue pairs */

static int refuse_bits(int error, const char *name, unsigned long long bits)
{
    return refuse(error, REASON_UNKNOWN_BITS, "%s is 0x%llx", name, bits);
}

static uint32_t capabilities(void)
{
    return (uint32_t)profile_value(setting_profile(), PROFILE_efa_caps, 0);
}

/* The builders of operations that the device does not have are refused. */
static int check_builders(const struct ibv_qp_init_attr_ex *attr)
{
    uint64_t wanted = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS ? attr->send_ops_flags : 0;
    uint64_t had = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
    if (capabilities() & EFADV_DEVICE_ATTR_CAPS_RDMA_READ)
        had |= IBV_QP_EX_WITH_RDMA_READ;
    if (capabilities() & EFADV_DEVICE_ATTR_CAPS_RDMA_WRITE)
        had |= IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
    if (!(wanted & ~had))
        return 0;
    return refuse(EOPNOTSUPP, REASON_PROFILE_SEND_OPS, "profile %s: send_ops_flags are 0x%llx, and may be 0x%llx",
                  setting_profile()->name, (unsigned long long)wanted, (unsigned long long)had);
}

struct most {
    const char *name;
    uint32_t value, most;
    enum reason reason;
};

static int check_queue_sizes(const struct ibv_context *context, const struct ibv_qp_cap *cap)
{
    const struct most of_all[] = {
        {"max_send_wr", cap->max_send_wr, efa_most(context, PROFILE_max_send_wr, PROFILE_max_qp_wr),
         REASON_PROFILE_QP_SIZE},
        {"max_recv_wr", cap->max_recv_wr, efa_most(context, PROFILE_max_recv_wr, PROFILE_max_qp_wr),
         REASON_PROFILE_QP_SIZE},
        {"max_send_sge", cap->max_send_sge, efa_most(context, PROFILE_max_send_sge, PROFILE_max_sge),
         REASON_PROFILE_QP_SIZE},
        {"max_recv_sge", cap->max_recv_sge, efa_most(context, PROFILE_max_recv_sge, PROFILE_max_sge),
         REASON_PROFILE_QP_SIZE},
        {"max_inline_data", cap->max_inline_data, context_of((struct ibv_context *)context)->device->limits.max_inline,
         REASON_PROFILE_INLINE},
    };
    for (size_t i = 0; i < sizeof of_all / sizeof *of_all; i++)
        if (of_all[i].value > of_all[i].most)
            return refuse(EINVAL, of_all[i].reason, "profile %s: %s is %u, of at most %u", setting_profile()->name,
                          of_all[i].name, of_all[i].value, of_all[i].most);
    return 0;
}

/* The device has no shared receive queues, and wants what a queue pair needs. */
static int check_attributes(const struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr)
{
    const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    if (attr->comp_mask & ~known)
        return refuse_bits(EOPNOTSUPP, "comp_mask", attr->comp_mask);
    if (attr->srq)
        return refuse(EINVAL, REASON_PROFILE_CALL, "profile %s: srq is given", setting_profile()->name);
    int error = check_builders(attr);
    return error ? error : check_queue_sizes(context, &attr->cap);
}

static uint32_t round_up(uint32_t value)
{
    uint32_t power = 1;
    while (power < value)
        power *= 2;
    return power;
}

/* Rounds the sizes as the device's library does: receives share their queue's entries with their elements. */
static void round_capacities(const struct ibv_context *context, struct ibv_qp_cap *cap)
{
    uint32_t sges = cap->max_recv_sge ? cap->max_recv_sge : 1;
    uint32_t most = efa_most(context, PROFILE_max_recv_wr, PROFILE_max_qp_wr);
    cap->max_send_wr = round_up(cap->max_send_wr);
    uint32_t receives = round_up(cap->max_recv_wr * sges) / sges;
    cap->max_recv_wr = receives < most ? receives : most;
}

static struct ibv_qp *make_srd(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
    const struct ibv_qp_cap before = attr->cap;
    int error = check_attributes(context, attr);
    if (error)
        return refused_null(error);
    round_capacities(context, &attr->cap);
    struct ibv_qp *qp = qp_create_of(context, qp_kind_find_of_driver("SRD"), attr);
    if (!qp)
        attr->cap = before;
    return qp;
}

static int refuse_type(uint32_t type)
{
    return refuse(EOPNOTSUPP, REASON_PROFILE_QP_TYPE, "profile %s: driver_qp_type is %u", setting_profile()->name,
                  type);
}

struct ibv_qp *own_efadv_create_driver_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr, uint32_t driver_qp_type)
{
    int error = efa_check("efadv_create_driver_qp", 0, 1);
    if (!error && !qp_type_is_of_driver(attr->qp_type))
        error =
            refuse(EINVAL, REASON_PROFILE_QP_TYPE, "profile %s: qp_type is %u", setting_profile()->name, attr->qp_type);
    if (!error && driver_qp_type != EFADV_QP_DRIVER_TYPE_SRD)
        error = refuse_type(driver_qp_type);
    if (error)
        return refused_null(error);
    struct ibv_qp_init_attr_ex all = {0};
    memcpy(&all, attr, offsetof(struct ibv_qp_init_attr_ex, comp_mask)); /* both structs begin alike */
    all.comp_mask = IBV_QP_INIT_ATTR_PD;
    all.pd = pd;
    struct ibv_qp *qp = make_srd(pd->context, &all);
    attr->cap = all.cap;
    return qp;
}

static int check_extension(const struct efadv_qp_init_attr *efa, uint32_t inlen)
{
    struct efadv_qp_init_attr all = {0};
    memcpy(&all, efa, inlen < sizeof all ? inlen : sizeof all);
    uint32_t flags = 0;
    if (capabilities() & EFADV_DEVICE_ATTR_CAPS_UNSOLICITED_WRITE_RECV)
        flags |= EFADV_QP_FLAGS_UNSOLICITED_WRITE_RECV;
    if (capabilities() & EFADV_DEVICE_ATTR_CAPS_RDMA_WRITE)
        flags |= EFADV_QP_FLAGS_INLINE_WRITE;
    if (all.comp_mask || all.reserved || !efa_is_zero_after(efa, sizeof all, inlen))
        return refuse_bits(EINVAL, "comp_mask", all.comp_mask);
    if (all.driver_qp_type != EFADV_QP_DRIVER_TYPE_SRD)
        return refuse_type(all.driver_qp_type);
    if (all.flags & ~flags)
        return refuse_bits(EOPNOTSUPP, "flags", all.flags);
    return all.wr_flags & ~(uint64_t)EFADV_WR_EX_WITH_PROCESSING_HINTS
               ? refuse_bits(EOPNOTSUPP, "wr_flags", all.wr_flags)
               : 0;
}

/* Sets the options of the flags, of a struct that may be shorter. */
static void set_options(struct ibv_qp *qp, const struct efadv_qp_init_attr *efa, uint32_t inlen)
{
    bool has = inlen >= offsetof(struct efadv_qp_init_attr, flags) + sizeof efa->flags;
    unsigned flags = has ? efa->flags : 0;
    srd_set_options(qp, flags & EFADV_QP_FLAGS_UNSOLICITED_WRITE_RECV, flags & EFADV_QP_FLAGS_INLINE_WRITE);
}

/* UD is made by it, too, as by ibv_create_qp_ex. */
struct ibv_qp *own_efadv_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
                                      struct efadv_qp_init_attr *efa, uint32_t inlen)
{
    int error = efa_check("efadv_create_qp_ex", offsetof(struct efadv_qp_init_attr, driver_qp_type), inlen);
    if (!error)
        error = check_extension(efa, inlen);
    if (error)
        return refused_null(error);
    if (!qp_type_is_of_driver(attr->qp_type))
        return qp_create(context, attr);
    struct ibv_qp *qp = make_srd(context, attr);
    if (qp)
        set_options(qp, efa, inlen);
    return qp;
}

/* --- completion queues */

static int check_cq(const struct efadv_cq_init_attr *efa, uint32_t inlen)
{
    struct efadv_cq_init_attr all = {0};
    memcpy(&all, efa, inlen < sizeof all ? inlen : sizeof all);
    uint64_t flags = 0;
    if (capabilities() & EFADV_DEVICE_ATTR_CAPS_CQ_WITH_SGID)
        flags |= EFADV_WC_EX_WITH_SGID;
    if (capabilities() & EFADV_DEVICE_ATTR_CAPS_UNSOLICITED_WRITE_RECV)
        flags |= EFADV_WC_EX_WITH_IS_UNSOLICITED;
    if (all.comp_mask || !efa_is_zero_after(efa, sizeof all, inlen))
        return refuse_bits(EINVAL, "comp_mask", all.comp_mask);
    if (all.wc_flags & ~flags)
        return refuse_bits(EOPNOTSUPP, "wc_flags", all.wc_flags);
    return all.flags ? refuse_bits(EOPNOTSUPP, "flags", all.flags) : 0;
}

struct ibv_cq_ex *own_efadv_create_cq(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr,
                                      struct efadv_cq_init_attr *efa, uint32_t inlen)
{
    int error = efa_check("efadv_create_cq", offsetof(struct efadv_cq_init_attr, wc_flags), inlen);
    if (!error)
        error = check_cq(efa, inlen);
    if (error)
        return refused_null(error);
    struct ibv_cq_ex *cq = cq_create(context, attr);
    if (cq && efa->wc_flags)
        efa_begin_cq(cq);
    return cq;
}
