#include "loopback.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void loopback_fail(const char *condition, int line)
{
    fprintf(stderr, "line %d: not %s\n", line, condition);
    exit(2);
}

static void open_first(struct loopback *loopback)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    MUST(list && *list);
    loopback->context = ibv_open_device(*list);
    ibv_free_device_list(list);
    MUST(loopback->context);
    loopback->pd = ibv_alloc_pd(loopback->context);
    loopback->memory = aligned_alloc(4096, LOOPBACK_MEMORY);
    MUST(loopback->pd && loopback->memory);
    memset(loopback->memory, 1, LOOPBACK_MEMORY);
    loopback->mr = ibv_reg_mr(loopback->pd, loopback->memory, LOOPBACK_MEMORY,
                              IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                  IBV_ACCESS_REMOTE_ATOMIC);
    MUST(loopback->mr);
}

static void make_cq(struct loopback *loopback, const struct loopback_options *options)
{
    int entries = options->entries ? options->entries : 4 * LOOPBACK_DEPTH;
    if (options->channel)
        MUST(loopback->channel = ibv_create_comp_channel(loopback->context));
    if (options->wc_flags || options->cq_flags) {
        struct ibv_cq_init_attr_ex attr = {.cqe = (uint32_t)entries, .channel = loopback->channel};
        attr.wc_flags = options->wc_flags;
        attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
        attr.flags = options->cq_flags;
        MUST(loopback->cq_ex = ibv_create_cq_ex(loopback->context, &attr));
        loopback->cq = ibv_cq_ex_to_cq(loopback->cq_ex);
    } else
        loopback->cq = ibv_create_cq(loopback->context, entries, NULL, loopback->channel, 0);
    MUST(loopback->cq);
}

static void make_domain(struct loopback *loopback)
{
    MUST(loopback->td = ibv_alloc_td(loopback->context, &(struct ibv_td_init_attr){0}));
    struct ibv_parent_domain_init_attr attr = {.pd = loopback->pd, .td = loopback->td};
    MUST(loopback->domain = ibv_alloc_parent_domain(loopback->context, &attr));
}

struct ibv_qp *loopback_make_qp(const struct loopback *loopback, const struct loopback_options *options)
{
    struct ibv_qp_init_attr_ex attr = {
        .send_cq = loopback->cq,
        .recv_cq = loopback->cq,
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = options->signals_all,
        .srq = loopback->srq,
        .pd = loopback->domain ? loopback->domain : loopback->pd,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ |
                          IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
        .cap = {.max_send_wr = LOOPBACK_DEPTH,
                .max_recv_wr = LOOPBACK_DEPTH,
                .max_send_sge = 2,
                .max_recv_sge = 2,
                .max_inline_data = options->no_inline ? 0 : 256},
    };
    struct ibv_qp_init_attr plain = {
        .send_cq = loopback->cq, .recv_cq = loopback->cq, .qp_type = IBV_QPT_RC, .cap = attr.cap};
    struct ibv_qp *qp =
        options->plain ? ibv_create_qp(loopback->pd, &plain) : ibv_create_qp_ex(loopback->context, &attr);
    MUST(qp);
    return qp;
}

int loopback_first_gid(struct ibv_context *context)
{
    static const union ibv_gid none;
    union ibv_gid gid = none;
    int index = -1;
    while (!memcmp(&gid, &none, sizeof none))
        MUST(!ibv_query_gid(context, 1, ++index, &gid));
    return index;
}

static struct ibv_qp_attr attributes(const struct loopback *loopback, uint32_t peer,
                                     const struct loopback_options *options)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
        .qp_access_flags = options->access
                               ? options->access
                               : IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
        .path_mtu = options->mtu ? options->mtu : IBV_MTU_1024,
        .dest_qp_num = peer,
        .rq_psn = options->rq_psn,
        .max_dest_rd_atomic = options->target_depth ? options->target_depth : 4,
        .max_rd_atomic = options->depth ? options->depth : 4,
        .min_rnr_timer = options->patient ? 27 : 12,
        .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 1}},
        .timeout = options->timeout_zero ? 0 : 14,
        .retry_cnt = options->retry_zero ? 0 : 6,
        .rnr_retry = options->rnr_endless ? 7 : 6,
    };
    int first = loopback_first_gid(loopback->context);
    attr.ah_attr.grh.sgid_index = (uint8_t)first;
    MUST(!ibv_query_gid(loopback->context, 1, first + options->target_gid, &attr.ah_attr.grh.dgid));
    return attr;
}

void loopback_listen(const struct loopback *loopback, struct ibv_qp *qp, uint32_t peer,
                     const struct loopback_options *options)
{
    struct ibv_qp_attr attr = attributes(loopback, peer, options);
    MUST(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    attr.qp_state = IBV_QPS_RTR;
    MUST(!ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                            IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
}

void loopback_connect(const struct loopback *loopback, struct ibv_qp *qp, uint32_t peer,
                      const struct loopback_options *options)
{
    struct ibv_qp_attr attr = attributes(loopback, peer, options);
    loopback_listen(loopback, qp, peer, options);
    attr.qp_state = IBV_QPS_RTS;
    MUST(!ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                            IBV_QP_MAX_QP_RD_ATOMIC));
}

void loopback_open(struct loopback *loopback, const struct loopback_options *options)
{
    *loopback = (struct loopback){0};
    open_first(loopback);
    make_cq(loopback, options);
    if (options->domain)
        make_domain(loopback);
    if (options->srq)
        MUST(loopback->srq = ibv_create_srq(
                 loopback->pd, &(struct ibv_srq_init_attr){.attr = {.max_wr = LOOPBACK_DEPTH, .max_sge = 1}}));
    for (int end = 0; end < LOOPBACK_ENDS; end++)
        loopback->qp[end] = loopback_make_qp(loopback, options);
    for (int end = 0; end < LOOPBACK_ENDS; end++)
        loopback_connect(loopback, loopback->qp[end], loopback->qp[!end]->qp_num, options);
}

void loopback_close(struct loopback *loopback)
{
    for (int end = 0; end < LOOPBACK_ENDS; end++)
        if (loopback->qp[end])
            MUST(!ibv_destroy_qp(loopback->qp[end]));
    if (loopback->srq)
        MUST(!ibv_destroy_srq(loopback->srq));
    if (loopback->domain)
        MUST(!ibv_dealloc_pd(loopback->domain) && !ibv_dealloc_td(loopback->td));
    if (loopback->cq)
        MUST(!ibv_destroy_cq(loopback->cq));
    if (loopback->channel)
        MUST(!ibv_destroy_comp_channel(loopback->channel));
    if (loopback->mr)
        MUST(!ibv_dereg_mr(loopback->mr));
    MUST(!ibv_dealloc_pd(loopback->pd));
    MUST(!ibv_close_device(loopback->context));
    free(loopback->memory);
}

enum ibv_wc_status loopback_poll(struct loopback *loopback, unsigned count)
{
    struct ibv_wc wc = {0};
    while (count) {
        int found = ibv_poll_cq(loopback->cq, 1, &wc);
        MUST(found >= 0);
        count -= (unsigned)found;
    }
    return wc.status;
}
