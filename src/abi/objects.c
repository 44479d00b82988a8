/* Objects: what libibverbs exports of them. Each function is its manual page's; verbs/ does the work, and
 * base/result.h keeps errno in step. */
#include <errno.h>

#include "abi/export.h"
#include "base/result.h"
#include "verbs/memory/dm.h"
#include "verbs/memory/mr.h"
#include "verbs/memory/mr_special.h"
#include "verbs/object/async.h"
#include "verbs/object/comp_channel.h"
#include "verbs/object/context.h"
#include "verbs/object/import.h"
#include "verbs/qp/qp_options.h"
#include "verbs/queue/cq.h"
#include "verbs/queue/srq.h"
#include "verbs/send/ah.h"
#include "verbs/send/qp_ex.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    return RESULT_pointer(context_allocate_pd(context));
}

EXPORT int ibv_dealloc_pd(struct ibv_pd *pd)
{
    return RESULT_code(context_deallocate_pd(pd));
}

EXPORT struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t handle)
{
    return RESULT_pointer(import_pd(context, handle));
}

EXPORT void ibv_unimport_pd(struct ibv_pd *pd)
{
    RESULT_nothing(import_undo(&((struct pd *)pd)->object));
}

EXPORT struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
    return RESULT_pointer(import_mr(pd, handle));
}

EXPORT void ibv_unimport_mr(struct ibv_mr *mr)
{
    RESULT_nothing(import_undo(&((struct mr *)mr)->object));
}

EXPORT struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t handle)
{
    return RESULT_pointer(import_dm(context, handle));
}

EXPORT void ibv_unimport_dm(struct ibv_dm *dm)
{
    RESULT_nothing(import_undo(&((struct dm *)dm)->object));
}

EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *address, size_t length, int access)
{
    return RESULT_pointer(mr_register(pd, address, length, (uintptr_t)address, (unsigned)access));
}

EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *address, size_t length, uint64_t iova, int access)
{
    return RESULT_pointer(mr_register(pd, address, length, iova, (unsigned)access));
}

EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *address, size_t length, uint64_t iova, unsigned access)
{
    return RESULT_pointer(mr_register(pd, address, length, iova, access));
}

EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
                                        int access)
{
    return RESULT_pointer(mr_special_register_fd(pd, offset, length, iova, fd, (unsigned)access, NULL));
}

EXPORT int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *address, size_t length, int access)
{
    return RESULT_minus(mr_reregister(mr, flags, pd, address, length, access));
}

EXPORT int ibv_dereg_mr(struct ibv_mr *mr)
{
    return RESULT_code(mr_deregister(mr));
}

EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    return RESULT_pointer(comp_channel_create(context));
}

EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
    return RESULT_code(comp_channel_destroy(channel));
}

EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int entries, void *cq_context,
                                    struct ibv_comp_channel *channel, int comp_vector)
{
    struct ibv_cq_init_attr_ex attr = {
        .cqe = entries < 0 ? 0 : (uint32_t)entries,
        .cq_context = cq_context,
        .channel = channel,
        .comp_vector = (uint32_t)comp_vector,
        .wc_flags = IBV_WC_STANDARD_FLAGS,
    };
    return RESULT_pointer((struct ibv_cq *)cq_create(context, &attr));
}

EXPORT int ibv_resize_cq(struct ibv_cq *cq, int entries)
{
    return RESULT_code(cq_resize(cq, entries));
}

EXPORT int ibv_destroy_cq(struct ibv_cq *cq)
{
    return RESULT_code(cq_destroy(cq));
}

EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
    return RESULT_event(comp_channel_get(channel, cq, cq_context));
}

EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned count)
{
    RESULT_nothing(comp_channel_acknowledge(cq, count));
}

EXPORT int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    return RESULT_event(async_get(context, event));
}

EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
    RESULT_nothing(async_acknowledge(event));
}

EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
    return RESULT_pointer(srq_create(pd, attr));
}

EXPORT int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
    return RESULT_code(srq_modify(srq, attr, mask));
}

EXPORT int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
    return RESULT_code(srq_query(srq, attr));
}

EXPORT int ibv_destroy_srq(struct ibv_srq *srq)
{
    return RESULT_code(srq_destroy(srq));
}

EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    struct ibv_qp_init_attr_ex extended = {
        .qp_context = attr->qp_context,
        .send_cq = attr->send_cq,
        .recv_cq = attr->recv_cq,
        .srq = attr->srq,
        .cap = attr->cap,
        .qp_type = attr->qp_type,
        .sq_sig_all = attr->sq_sig_all,
        .comp_mask = IBV_QP_INIT_ATTR_PD,
        .pd = pd,
    };
    struct ibv_qp *qp = RESULT_pointer(qp_create(pd->context, &extended));
    if (qp)
        attr->cap = extended.cap;
    return qp;
}

EXPORT int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    return RESULT_code(qp_modify(qp, attr, mask));
}

EXPORT int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
    return RESULT_code(qp_query(qp, attr, mask, init));
}

EXPORT int ibv_destroy_qp(struct ibv_qp *qp)
{
    return RESULT_code(qp_destroy(qp));
}

EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
    return qp_ex_of(qp);
}

EXPORT int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    return RESULT_code(qp_query_ece(qp, ece));
}

EXPORT int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    return RESULT_code(qp_set_ece(qp, ece));
}

EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode opcode, uint32_t flags)
{
    return qp_data_in_order(qp, opcode, flags);
}

EXPORT int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    return RESULT_code(qp_attach(qp, gid, lid));
}

EXPORT int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    return RESULT_code(qp_detach(qp, gid, lid));
}

EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    return RESULT_pointer(ah_create(pd, attr));
}

EXPORT int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port, struct ibv_wc *wc, struct ibv_grh *grh,
                               struct ibv_ah_attr *attr)
{
    return RESULT_minus(ah_from_wc(context, port, wc, grh, attr));
}

EXPORT struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port)
{
    struct ibv_ah_attr attr;
    return RESULT_pointer(ah_from_wc(pd->context, port, wc, grh, &attr) ? NULL : ah_create(pd, &attr));
}

EXPORT int ibv_destroy_ah(struct ibv_ah *ah)
{
    return RESULT_code(ah_destroy(ah));
}
