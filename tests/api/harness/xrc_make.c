#include "xrc_make.h"

struct ibv_xrcd *xrc_make_domain(struct ibv_context *context, int fd, int flags)
{
    struct ibv_xrcd_init_attr attr = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = fd, .oflags = flags};
    return ibv_open_xrcd(context, &attr);
}

struct ibv_srq *xrc_make_srq(struct ibv_pd *pd, struct ibv_xrcd *xrcd, struct ibv_cq *cq, uint32_t size)
{
    struct ibv_srq_init_attr_ex init = {
        .attr = {.max_wr = size, .max_sge = 1},
        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
        .srq_type = IBV_SRQT_XRC,
        .pd = pd,
        .xrcd = xrcd,
        .cq = cq,
    };
    return ibv_create_srq_ex(pd->context, &init);
}

struct ibv_qp *xrc_make_receiver(struct ibv_context *context, struct ibv_xrcd *xrcd)
{
    struct ibv_qp_init_attr_ex init = {.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd};
    return ibv_create_qp_ex(context, &init);
}

struct ibv_qp *xrc_make_handle(struct ibv_context *context, struct ibv_xrcd *xrcd, uint32_t number)
{
    struct ibv_qp_open_attr attr = {.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
                                                 IBV_QP_OPEN_ATTR_CONTEXT | IBV_QP_OPEN_ATTR_TYPE,
                                    .qp_num = number,
                                    .xrcd = xrcd,
                                    .qp_context = context,
                                    .qp_type = IBV_QPT_XRC_RECV};
    return ibv_open_qp(context, &attr);
}
