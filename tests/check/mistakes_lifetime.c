/* Objects that are used behind their end. */
#include <pthread.h>
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

/* Each is told: what a program names in lists, attributes and structs, too. */
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

/* -- another thread is there */

struct other {
    struct loopback *loopback;
    int ways[2]; /* a pipe: that it is there; that it may go on */
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
    usleep(200000);
    ibv_wr_abort(ibv_qp_to_qp_ex(other->loopback->qp[0]));
    return NULL;
}

/* In ibv_get_cq_event on a channel; between ibv_wr_start and ibv_wr_abort on a queue pair. */
void destroy_inside(enum loopback_variant variant)
{
    struct loopback loopback;
    struct other other = {&loopback, {0}};
    pthread_t thread;
    char byte;
    loopback_open(&loopback, &(struct loopback_options){0});
    loopback.channel = ibv_create_comp_channel(loopback.context);
    MUST(!pipe(other.ways));
    MUST(!pthread_create(&thread, NULL, variant == NEIGHBOUR ? begin_batch : wait_for_event, &other));
    MUST(read(other.ways[0], &byte, 1) == 1);
    usleep(100000);
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
