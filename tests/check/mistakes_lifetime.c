/* Objects that are used after their end. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "mistakes.h"

/* An MR twice; a post on a queue pair that is gone. */
void use_destroyed(enum loopback_variant variant)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    struct ibv_mr *mr = ibv_reg_mr(loopback.pd, loopback.memory, 64, IBV_ACCESS_LOCAL_WRITE);
    MUST(mr && !ibv_dereg_mr(mr));
    struct ibv_qp *qp = loopback_make_qp(&loopback, &(struct loopback_options){0});
    struct ibv_recv_wr *bad, receive = {.wr_id = 3};
    MUST(!ibv_destroy_qp(qp));
    if (variant == FAULTY)
        MUST(ibv_dereg_mr(mr) == EINVAL); /* use-after-destroy faulty */
    if (variant == NEIGHBOUR)
        MUST(ibv_post_recv(qp, &receive, &bad) == EINVAL); /* use-after-destroy neighbour */
    loopback_close(&loopback);
}

static void build(struct ibv_qp *ibv, const struct loopback *loopback)
{
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(ibv);
    ibv_wr_start(qp);
    qp->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_write(qp, loopback->mr->rkey, (uintptr_t)loopback->memory);
    ibv_wr_set_sge(qp, loopback->mr->lkey, (uintptr_t)loopback->memory, 8);
    MUST(ibv_wr_complete(qp) == EINVAL);
}

static void send_to(struct loopback *loopback, struct ibv_ah *ah)
{
    struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_UD, .send_cq = loopback->cq, .recv_cq = loopback->cq};
    struct ibv_send_wr *rest, wr = {.opcode = IBV_WR_SEND, .wr.ud = {.ah = ah, .remote_qpn = 1}};
    attr.cap.max_send_wr = 1;
    struct ibv_qp *qp = ibv_create_qp(loopback->pd, &attr);
    MUST(qp && ibv_post_send(qp, &wr, &rest) == EINVAL && rest == &wr && !ibv_destroy_qp(qp));
}

/* Each use is reported: also of objects that a program names in lists, attributes and structs. */
void use_what_is_gone(enum loopback_variant variant)
{
    struct loopback loopback;
    struct ibv_wc wc;
    loopback_open(&loopback, &(struct loopback_options){0});
    struct ibv_ah_attr address = {.is_global = 1, .port_num = 1, .grh.hop_limit = 64};
    MUST(!ibv_query_gid(loopback.context, 1, 0, &address.grh.dgid));
    struct ibv_pd *pd = ibv_alloc_pd(loopback.context);
    struct ibv_cq *cq = ibv_create_cq(loopback.context, 4, NULL, NULL, 0);
    struct ibv_qp *qp = loopback_make_qp(&loopback, &(struct loopback_options){0});
    struct ibv_ah *ah = ibv_create_ah(loopback.pd, &address);
    MUST(pd && cq && ah && !ibv_destroy_qp(qp) && !ibv_dealloc_pd(pd) && !ibv_destroy_cq(cq) && !ibv_destroy_ah(ah));
    MUST(!ibv_reg_mr(pd, loopback.memory, 64, 0) && errno == EINVAL);
    MUST(ibv_poll_cq(cq, 1, &wc) < 0);
    MUST(ibv_req_notify_cq(cq, 0) == EINVAL);
    MUST(ibv_query_qp(qp, &(struct ibv_qp_attr){0}, IBV_QP_STATE, &(struct ibv_qp_init_attr){0}) == EINVAL);
    build(qp, &loopback);
    send_to(&loopback, ah);
    MUST(!ibv_create_qp(loopback.pd, &(struct ibv_qp_init_attr){.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC}));
    loopback_close(&loopback);
    MUST(!ibv_alloc_pd(loopback.context));
}

/* A receive that does not fit; a READ into a region that was deregistered; a SEND from one of another domain. */
void name_wrong_region(enum loopback_variant variant)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    struct ibv_mr *mr = ibv_reg_mr(loopback.pd, loopback.memory, 100, IBV_ACCESS_LOCAL_WRITE);
    MUST(mr);
    struct ibv_sge piece = {(uintptr_t)loopback.memory + 50, variant == TWIN ? 50 : 60, mr->lkey};
    struct ibv_recv_wr *bad, receive = {.sg_list = &piece, .num_sge = 1};
    struct ibv_send_wr *rest, read = {.sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_RDMA_READ};
    read.send_flags = IBV_SEND_SIGNALED;
    read.wr.rdma.remote_addr = (uintptr_t)loopback.memory + LOOPBACK_MEMORY / 2;
    read.wr.rdma.rkey = loopback.mr->rkey;
    if (variant == NEIGHBOUR) {
        MUST(!ibv_dereg_mr(mr));
        mr = NULL;
        MUST(!ibv_post_send(loopback.qp[0], &read, &rest)); /* wrong-key neighbour */
        MUST(loopback_poll(&loopback, 1) == IBV_WC_LOC_PROT_ERR);
    } else {
        MUST(!ibv_post_recv(loopback.qp[0], &receive, &bad)); /* wrong-key faulty */
    }
    MUST(!ibv_modify_qp(loopback.qp[0], &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE));
    MUST(!mr || !ibv_dereg_mr(mr));
    loopback_close(&loopback);
}

/* Two WRITEs when the queue pair is destroyed; a completion of a receive that is in its queue at the end. */
void poll_nothing(enum loopback_variant variant)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    struct ibv_recv_wr *bad, receive = {.wr_id = 3};
    struct ibv_cq *cq = NULL;
    if (variant == NEIGHBOUR) {
        cq = ibv_create_cq(loopback.context, 4, NULL, NULL, 0); /* never-polled neighbour */
        struct loopback other = loopback;
        other.cq = cq;
        struct ibv_qp *qp = loopback_make_qp(&other, &(struct loopback_options){0});
        loopback_connect(&loopback, qp, qp->qp_num, &(struct loopback_options){0});
        MUST(!ibv_post_recv(qp, &receive, &bad));
        MUST(!ibv_modify_qp(qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE)); /* flushes it */
        exit(0);
    }
    MUST(!WRITE(&loopback, 0, 8, IBV_SEND_SIGNALED)); /* never-polled faulty */
    MUST(!WRITE(&loopback, 8, 8, IBV_SEND_SIGNALED));
    loopback_poll(&loopback, variant == TWIN ? 2 : 0);
    loopback_close(&loopback);
}

static struct ibv_ah *make_ah(const struct loopback *loopback, struct ibv_pd *pd)
{
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh.hop_limit = 64};
    MUST(!ibv_query_gid(loopback->context, 1, 0, &attr.grh.dgid));
    struct ibv_ah *ah = ibv_create_ah(pd, &attr);
    MUST(ah);
    return ah;
}

static struct ibv_qp *make_datagram_qp(const struct loopback *loopback)
{
    struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_UD, .send_cq = loopback->cq, .recv_cq = loopback->cq};
    struct ibv_qp_attr to = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 7};
    attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attr.pd = loopback->pd;
    attr.send_ops_flags = IBV_QP_EX_WITH_SEND;
    attr.cap = (struct ibv_qp_cap){.max_send_wr = 4, .max_send_sge = 1};
    struct ibv_qp *qp = ibv_create_qp_ex(loopback->context, &attr);
    MUST(qp && !ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
    to.qp_state = IBV_QPS_RTR;
    MUST(!ibv_modify_qp(qp, &to, IBV_QP_STATE));
    to.qp_state = IBV_QPS_RTS;
    MUST(!ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_SQ_PSN));
    return qp;
}

/* An address handle of another domain. Work requests by lists; by builders. */
void use_foreign_address(enum loopback_variant variant)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    struct ibv_pd *other = ibv_alloc_pd(loopback.context);
    MUST(other);
    struct ibv_ah *ah = make_ah(&loopback, variant == TWIN ? loopback.pd : other);
    struct ibv_qp *qp = make_datagram_qp(&loopback);
    struct ibv_sge piece = loopback_piece(&loopback, 0, 64);
    struct ibv_send_wr *rest, wr = {.opcode = IBV_WR_SEND, .sg_list = &piece, .num_sge = 1};
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = qp->qp_num;
    wr.wr.ud.remote_qkey = 7;
    if (variant == NEIGHBOUR) {
        struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
        ibv_wr_start(ex);
        ex->wr_flags = IBV_SEND_SIGNALED;
        ibv_wr_send(ex); /* ah-domain neighbour */
        ibv_wr_set_ud_addr(ex, ah, qp->qp_num, 7);
        ibv_wr_set_sge(ex, piece.lkey, piece.addr, piece.length);
        MUST(!ibv_wr_complete(ex));
    } else {
        MUST(!ibv_post_send(qp, &wr, &rest)); /* ah-domain faulty */
    }
    loopback_poll(&loopback, 1);
    MUST(!ibv_destroy_ah(ah) && !ibv_dealloc_pd(other) && !ibv_destroy_qp(qp));
    loopback_close(&loopback);
}

/* Work requests by lists; by builders. */
void destroy_address(enum loopback_variant variant)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    struct ibv_ah *ah = make_ah(&loopback, loopback.pd);
    struct ibv_qp *qp = make_datagram_qp(&loopback);
    struct ibv_sge piece = loopback_piece(&loopback, 0, 64);
    struct ibv_send_wr *rest, wr = {.opcode = IBV_WR_SEND, .sg_list = &piece, .num_sge = 1};
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = qp->qp_num;
    wr.wr.ud.remote_qkey = 7;
    if (variant == NEIGHBOUR) {
        struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
        ibv_wr_start(ex);
        ex->wr_flags = IBV_SEND_SIGNALED;
        ibv_wr_send(ex); /* ah-in-use neighbour */
        ibv_wr_set_ud_addr(ex, ah, qp->qp_num, 7);
        ibv_wr_set_sge(ex, piece.lkey, piece.addr, piece.length);
        MUST(!ibv_wr_complete(ex));
    } else {
        MUST(!ibv_post_send(qp, &wr, &rest)); /* ah-in-use faulty */
    }
    if (variant == TWIN)
        loopback_poll(&loopback, 1);
    MUST(!ibv_destroy_ah(ah));
    if (variant != TWIN)
        loopback_poll(&loopback, 1);
    MUST(!ibv_destroy_qp(qp));
    loopback_close(&loopback);
}

/* -- another thread is there */

struct other {
    struct loopback *loopback;
    int ways[2]; /* a pipe: that it is there; that it may continue */
    atomic_bool destroys;
};

static void *wait_for_event(void *argument)
{
    struct other *other = argument;
    struct ibv_cq *cq;
    void *unused;
    MUST(write(other->ways[1], "x", 1) == 1);
    ibv_get_cq_event(other->loopback->channel, &cq, &unused);
    return NULL;
}

static void *begin_batch(void *argument)
{
    struct other *other = argument;
    ibv_wr_start(ibv_qp_to_qp_ex(other->loopback->qp[0]));
    MUST(write(other->ways[1], "x", 1) == 1);
    while (!atomic_load(&other->destroys)) /* which waits for the end of the batch then */
        usleep(1000);
    usleep(500000); /* longer than the checker waits for the end of the batch */
    ibv_wr_abort(ibv_qp_to_qp_ex(other->loopback->qp[0]));
    return NULL;
}

/* Another thread is in ibv_get_cq_event on a channel; between ibv_wr_start and ibv_wr_abort on a queue pair. */
void destroy_inside(enum loopback_variant variant)
{
    struct loopback loopback;
    struct other other = {.loopback = &loopback};
    pthread_t thread;
    char byte;
    loopback_open(&loopback, &(struct loopback_options){0});
    loopback.channel = ibv_create_comp_channel(loopback.context);
    MUST(!pipe(other.ways));
    MUST(!pthread_create(&thread, NULL, variant == NEIGHBOUR ? begin_batch : wait_for_event, &other));
    MUST(read(other.ways[0], &byte, 1) == 1);
    usleep(variant == NEIGHBOUR ? 0 : 300000); /* the other thread waits within its call */
    atomic_store(&other.destroys, true);
    if (variant == TWIN)
        MUST(!pthread_cancel(thread) && !pthread_join(thread, NULL));
    if (variant == NEIGHBOUR)
        MUST(!ibv_destroy_qp(loopback.qp[0])); /* destroyed-inside neighbour */
    else
        MUST(!ibv_destroy_comp_channel(loopback.channel)); /* destroyed-inside faulty */
    if (variant == NEIGHBOUR)
        MUST(!pthread_join(thread, NULL) && !ibv_destroy_comp_channel(loopback.channel));
    loopback.channel = NULL;
    loopback.qp[0] = variant == NEIGHBOUR ? NULL : loopback.qp[0];
    loopback_close(&loopback);
}
