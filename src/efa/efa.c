#include "efa/efa.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/result.h"
#include "config/device.h"
#include "config/limits.h"
#include "config/settings.h"
#include "efa/answers.h"
#include "events/refusal.h"
#include "profile/profile.h"
#include "verbs/object/context.h"
#include "verbs/send/ah.h"

/* Programs ask each device by efadv_query_device whether it is one. */
static int refuse_device(const char *call)
{
    const struct profile *profile = setting_profile();
    const char *name = profile ? profile->name : "none";
    if (profile_is_efa(profile))
        return refuse(EOPNOTSUPP, REASON_PROFILE_CALL, "profile %s", name);
    if (!strcmp(call, "efadv_query_device"))
        return refuse_offer(EOPNOTSUPP, REASON_NOT_EFA, "profile %s", name);
    return refuse(EOPNOTSUPP, REASON_NOT_EFA, "profile %s", name);
}

#define LACKED(outcome, type, name, parameters, arguments)                                                             \
    type own_##name parameters                                                                                         \
    {                                                                                                                  \
        RESULT_REFUSE_##outcome(refuse_device(#name));                                                                 \
    }
#include "calls/efa.def"

/* A member is there if it begins below the length that the program knows, as in rdma-core. */
#define HAS(type, member, inlen) (offsetof(struct type, member) < (inlen))

int efa_check(const char *call, size_t last, uint32_t inlen)
{
    if (!profile_is_efa(setting_profile()))
        return refuse_device(call);
    if (last < inlen)
        return 0;
    return refuse(EINVAL, REASON_STRUCT_SIZE, "inlen is %u, of at least %zu", inlen, last + 1);
}

uint32_t efa_most(const struct ibv_context *context, enum profile_key queue, enum profile_key both)
{
    return limits_most(&context_of((struct ibv_context *)context)->device->limits, setting_profile(), queue, both);
}

bool efa_is_zero_after(const void *of, size_t known, uint32_t inlen)
{
    const uint8_t *bytes = of;
    for (size_t i = known; i < inlen; i++)
        if (bytes[i])
            return false;
    return true;
}

static uint32_t value_of(enum profile_key key)
{
    return (uint32_t)profile_value(setting_profile(), key, 0);
}

enum { NARROW_INLINE = 32 }; /* the most bytes inline of work requests of 64 bytes; others have 128 */

/* --- questions */

int own_efadv_query_device(struct ibv_context *context, struct efadv_device_attr *attr, uint32_t inlen)
{
    const uint32_t rdma = EFADV_DEVICE_ATTR_CAPS_RDMA_READ | EFADV_DEVICE_ATTR_CAPS_RDMA_WRITE;
    int error = efa_check("efadv_query_device", offsetof(struct efadv_device_attr, inline_buf_size_ex), inlen);
    if (error)
        return error;
    uint32_t caps = value_of(PROFILE_efa_caps), bytes = context_of(context)->device->limits.max_inline;
    memset(attr, 0, inlen);
    attr->max_sq_wr = efa_most(context, PROFILE_max_send_wr, PROFILE_max_qp_wr);
    attr->max_rq_wr = efa_most(context, PROFILE_max_recv_wr, PROFILE_max_qp_wr);
    attr->max_sq_sge = (uint16_t)efa_most(context, PROFILE_max_send_sge, PROFILE_max_sge);
    attr->max_rq_sge = (uint16_t)efa_most(context, PROFILE_max_recv_sge, PROFILE_max_sge);
    attr->inline_buf_size = (uint16_t)(bytes < NARROW_INLINE ? bytes : NARROW_INLINE);
    attr->inline_buf_size_ex = (uint16_t)bytes;
    if (HAS(efadv_device_attr, device_caps, inlen))
        attr->device_caps = HAS(efadv_device_attr, max_rdma_size, inlen) ? caps : caps & ~rdma;
    if (HAS(efadv_device_attr, max_rdma_size, inlen))
        attr->max_rdma_size = value_of(PROFILE_max_rdma_size);
    return 0;
}

int own_efadv_query_ah(struct ibv_ah *ah, struct efadv_ah_attr *attr, uint32_t inlen)
{
    int error = efa_check("efadv_query_ah", offsetof(struct efadv_ah_attr, ahn), inlen);
    if (error)
        return error;
    memset(attr, 0, inlen);
    attr->ahn = ((const struct ah *)ah)->number;
    return 0;
}

/* A host without an adapter has no interconnect to name, so no field is valid. */
int own_efadv_query_mr(struct ibv_mr *mr, struct efadv_mr_attr *attr, uint32_t inlen)
{
    int error = efa_check("efadv_query_mr", offsetof(struct efadv_mr_attr, rdma_recv_ic_id), inlen);
    if (!error)
        memset(attr, 0, inlen);
    return error;
}

/* --- depths of queues */

static int refuse_mask(uint64_t mask)
{
    return refuse(EINVAL, REASON_UNKNOWN_BITS, "comp_mask is 0x%llx", (unsigned long long)mask);
}

static int check_most(enum reason reason, const char *name, uint32_t value, uint32_t least, uint32_t most)
{
    if (value >= least && value <= most)
        return 0;
    return refuse(EINVAL, reason, "profile %s: %s is %u, of %u to %u", setting_profile()->name, name, value, least,
                  most);
}

static int check_sends(const struct ibv_context *context, const struct efadv_sq_depth_attr *attr)
{
    uint32_t sges = efa_most(context, PROFILE_max_send_sge, PROFILE_max_sge);
    int error = check_most(REASON_PROFILE_QP_SIZE, "max_send_sge", attr->max_send_sge, 0, sges);
    if (!error)
        error = check_most(REASON_PROFILE_QP_SIZE, "max_rdma_sge", attr->max_rdma_sge, 0, value_of(PROFILE_max_sge_rd));
    if (!error)
        error = check_most(REASON_PROFILE_INLINE, "max_inline_data", attr->max_inline_data, 0,
                           context_of((struct ibv_context *)context)->device->limits.max_inline);
    return error;
}

/* The queue lies in memory of the device, where wider work requests take twice the room. */
int own_efadv_get_max_sq_depth(struct ibv_context *context, struct efadv_sq_depth_attr *attr, uint32_t inlen)
{
    int error = efa_check("efadv_get_max_sq_depth", offsetof(struct efadv_sq_depth_attr, max_inline_data), inlen);
    if (!error && attr->comp_mask)
        error = refuse_mask(attr->comp_mask);
    if (!error)
        error = check_sends(context, attr);
    if (error)
        return -refused(error);
    bool wide = attr->max_inline_data > NARROW_INLINE || attr->flags & EFADV_SQ_DEPTH_ATTR_INLINE_WRITE;
    uint32_t room = efa_most(context, PROFILE_max_send_wr, PROFILE_max_qp_wr) / (wide ? 2 : 1), depth = 1;
    while (depth <= room / 2)
        depth *= 2;
    return (int)depth;
}

int own_efadv_get_max_rq_depth(struct ibv_context *context, struct efadv_rq_depth_attr *attr, uint32_t inlen)
{
    int error = efa_check("efadv_get_max_rq_depth", offsetof(struct efadv_rq_depth_attr, max_recv_sge), inlen);
    if (!error && attr->comp_mask)
        error = refuse_mask(attr->comp_mask);
    if (!error)
        error = check_most(REASON_PROFILE_QP_SIZE, "max_recv_sge", attr->max_recv_sge, 1,
                           efa_most(context, PROFILE_max_recv_sge, PROFILE_max_sge));
    if (error)
        return -refused(error);
    return (int)(efa_most(context, PROFILE_max_recv_wr, PROFILE_max_qp_wr) / attr->max_recv_sge);
}
