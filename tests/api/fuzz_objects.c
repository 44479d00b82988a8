#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_model.h"
#include "harness.h"

uint64_t model_random(struct model *model, uint64_t below)
{
    model->random ^= model->random << 13;
    model->random ^= model->random >> 7;
    model->random ^= model->random << 17;
    return (model->random >> 11) % below;
}

void model_fail(struct model *model, const char *format, ...)
{
    char what[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    harness_fail(__FILE__, __LINE__, "seed %llu: %s", (unsigned long long)model->seed, what);
}

/* Most sequences begin with some of everything, so that data moves soon. */
static void populate(struct model *model)
{
    for (int i = 0; i < 60; i++)
        model_make(model);
    for (int i = 0; i < 10; i++)
        model_connect(model);
}

struct model *model_create(uint64_t seed)
{
    struct model *model = aligned_alloc(64, sizeof *model);
    struct ibv_device **list = ibv_get_device_list(NULL);
    EXPECT_TRUE(model && list && list[0]);
    memset(model, 0, sizeof *model);
    model->seed = seed;
    model->random = seed * 0x9e3779b97f4a7c15ull + 1;
    model->context = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    if (!model->context)
        model_fail(model, "ibv_open_device: errno %d", errno);
    if (model_random(model, 8))
        populate(model);
    return model;
}

static void make_pd(struct model *model, int at)
{
    model->pds[at] = (struct model_pd){.pd = ibv_alloc_pd(model->context)};
    if (!model->pds[at].pd)
        model_fail(model, "ibv_alloc_pd: errno %d", errno);
}

static void make_mr(struct model *model, int at)
{
    enum { ALL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC };
    static const int access[] = {0,   IBV_ACCESS_LOCAL_WRITE, ALL, ALL, ALL,
                                 ALL, IBV_ACCESS_REMOTE_WRITE /* without LOCAL_WRITE: refused */};
    int pd = (int)model_random(model, PDS), chosen = access[model_random(model, COUNT(access))];
    struct ibv_mr *mr;
    if (!model->pds[pd].pd)
        return;
    errno = 0;
    mr = ibv_reg_mr(model->pds[pd].pd, model->memory, MEMORY, chosen);
    MODEL_EXPECT(model, !mr, chosen == IBV_ACCESS_REMOTE_WRITE);
    if (!mr) {
        MODEL_EXPECT(model, errno, EINVAL);
        return;
    }
    model->mrs[at] = (struct model_mr){mr, pd, chosen == ALL};
    model->pds[pd].uses++;
}

static void make_cq(struct model *model, int at)
{
    struct ibv_cq *cq = ibv_create_cq(model->context, CQE, NULL, NULL, 0);
    if (!cq)
        model_fail(model, "ibv_create_cq: errno %d", errno);
    model->cqs[at] = (struct model_cq){.cq = cq};
}

static void make_srq(struct model *model, int at)
{
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = DEPTH, .max_sge = 1}};
    int pd = (int)model_random(model, PDS);
    if (!model->pds[pd].pd)
        return;
    model->srqs[at] = (struct model_srq){.srq = ibv_create_srq(model->pds[pd].pd, &attr), .pd = pd};
    if (!model->srqs[at].srq)
        model_fail(model, "ibv_create_srq: errno %d", errno);
    model->pds[pd].uses++;
}

static void make_qp(struct model *model, int at)
{
    static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
    struct model_qp *qp = &model->qps[at];
    struct ibv_qp_init_attr attr = {
        .cap = {
            .max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 16}};
    *qp = (struct model_qp){.peer = -1};
    qp->pd = (int)model_random(model, PDS);
    qp->send_cq = (int)model_random(model, CQS);
    qp->receive_cq = (int)model_random(model, CQS);
    qp->srq = (int)model_random(model, SRQS * 3) - SRQS * 2;
    attr.qp_type = types[model_random(model, COUNT(types))];
    attr.send_cq = model->cqs[qp->send_cq].cq;
    attr.recv_cq = model->cqs[qp->receive_cq].cq;
    if (qp->srq < 0 || !model->srqs[qp->srq].srq)
        qp->srq = -1;
    attr.srq = qp->srq < 0 ? NULL : model->srqs[qp->srq].srq;
    if (!model->pds[qp->pd].pd)
        return;
    qp->qp = ibv_create_qp(model->pds[qp->pd].pd, &attr);
    MODEL_EXPECT(model, !qp->qp, !attr.send_cq || !attr.recv_cq);
    if (!qp->qp)
        return;
    model->pds[qp->pd].uses++;
    model->cqs[qp->send_cq].uses++;
    model->cqs[qp->receive_cq].uses++;
    if (qp->srq >= 0)
        model->srqs[qp->srq].uses++;
}

void model_make(struct model *model)
{
    int pd = (int)model_random(model, PDS), mr = (int)model_random(model, MRS), cq = (int)model_random(model, CQS),
        srq = (int)model_random(model, SRQS), qp = (int)model_random(model, QPS);
    switch (model_random(model, 6)) {
    case 0:
        return model->pds[pd].pd ? (void)0 : make_pd(model, pd);
    case 1:
        return model->cqs[cq].cq ? (void)0 : make_cq(model, cq);
    case 2:
        return model->mrs[mr].mr ? (void)0 : make_mr(model, mr);
    case 3:
        return model->srqs[srq].srq ? (void)0 : make_srq(model, srq);
    default:
        return model->qps[qp].qp ? (void)0 : make_qp(model, qp);
    }
}

static void destroy_qp(struct model *model, struct model_qp *qp)
{
    if (!qp->qp)
        return;
    if (qp->ah) {
        MODEL_EXPECT(model, ibv_destroy_ah(qp->ah), 0);
        model->pds[qp->pd].uses--;
    }
    MODEL_EXPECT(model, ibv_destroy_qp(qp->qp), 0);
    model->pds[qp->pd].uses--;
    model->cqs[qp->send_cq].uses--;
    model->cqs[qp->receive_cq].uses--;
    if (qp->srq >= 0)
        model->srqs[qp->srq].uses--;
    *qp = (struct model_qp){.peer = -1};
}

static void destroy_mr(struct model *model, struct model_mr *mr)
{
    if (!mr->mr)
        return;
    MODEL_EXPECT(model, ibv_dereg_mr(mr->mr), 0);
    model->pds[mr->pd].uses--;
    mr->mr = NULL;
}

static void destroy_srq(struct model *model, struct model_srq *srq)
{
    if (!srq->srq)
        return;
    MODEL_EXPECT(model, ibv_destroy_srq(srq->srq), srq->uses ? EBUSY : 0);
    if (srq->uses)
        return;
    model->pds[srq->pd].uses--;
    srq->srq = NULL;
}

static void destroy_cq(struct model *model, struct model_cq *cq)
{
    if (!cq->cq)
        return;
    MODEL_EXPECT(model, ibv_destroy_cq(cq->cq), cq->uses ? EBUSY : 0);
    if (!cq->uses)
        cq->cq = NULL;
}

static void destroy_pd(struct model *model, struct model_pd *pd)
{
    if (!pd->pd)
        return;
    MODEL_EXPECT(model, ibv_dealloc_pd(pd->pd), pd->uses ? EBUSY : 0);
    if (!pd->uses)
        pd->pd = NULL;
}

void model_destroy(struct model *model)
{
    switch (model_random(model, 8)) {
    case 0:
    case 1:
        return destroy_pd(model, &model->pds[model_random(model, PDS)]);
    case 2:
    case 3:
        return destroy_cq(model, &model->cqs[model_random(model, CQS)]);
    case 4:
        return destroy_srq(model, &model->srqs[model_random(model, SRQS)]);
    case 5:
        return destroy_mr(model, &model->mrs[model_random(model, MRS)]);
    default:
        return destroy_qp(model, &model->qps[model_random(model, QPS)]);
    }
}

/* A handle that was overwritten is an error, and nothing is harmed. */
void model_spoil_handle(struct model *model)
{
    struct model_qp *qp = &model->qps[model_random(model, QPS)];
    struct model_cq *cq = &model->cqs[model_random(model, CQS)];
    struct model_mr *mr = &model->mrs[model_random(model, MRS)];
    uint32_t noise = (uint32_t)model_random(model, 1u << 31) + 1;
    if (qp->qp) {
        qp->qp->handle ^= noise;
        MODEL_EXPECT(model, ibv_destroy_qp(qp->qp), ENOENT);
        qp->qp->handle ^= noise;
    }
    if (cq->cq) {
        cq->cq->handle ^= noise;
        MODEL_EXPECT(model, ibv_destroy_cq(cq->cq), ENOENT);
        cq->cq->handle ^= noise;
    }
    if (mr->mr) {
        mr->mr->handle ^= noise;
        MODEL_EXPECT(model, ibv_dereg_mr(mr->mr), ENOENT);
        mr->mr->handle ^= noise;
    }
}

/* Once every queue pair is in ERR, all work must complete; what is unsignalled and went well may be silent. */
static bool is_over(struct model *model)
{
    for (int i = 0; i < QPS; i++) {
        struct model_qp *qp = &model->qps[i];
        if (qp->receives.head != qp->receives.tail)
            return false;
        for (unsigned at = qp->sends.head; at != qp->sends.tail; at++)
            if (qp->sends.signalled[at])
                return false;
    }
    return true;
}

void model_end(struct model *model)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    for (int i = 0; i < QPS; i++)
        if (model->qps[i].qp && model->qps[i].state != IBV_QPS_RESET)
            MODEL_EXPECT(model, ibv_modify_qp(model->qps[i].qp, &attr, IBV_QP_STATE), 0);
    for (int round = 0; round < 1000 && (!round || !is_over(model)); round++)
        for (int cq = 0; cq < CQS; cq++)
            model_poll(model, cq);
    if (!is_over(model))
        model_fail(model, "in the end some work has not completed");
    for (int i = 0; i < QPS; i++)
        destroy_qp(model, &model->qps[i]);
    for (int i = 0; i < MRS; i++)
        destroy_mr(model, &model->mrs[i]);
    for (int i = 0; i < SRQS; i++)
        destroy_srq(model, &model->srqs[i]);
    for (int i = 0; i < CQS; i++)
        destroy_cq(model, &model->cqs[i]);
    for (int i = 0; i < PDS; i++) {
        destroy_pd(model, &model->pds[i]);
        if (model->pds[i].pd)
            model_fail(model, "the model counts its uses wrongly");
    }
    MODEL_EXPECT(model, ibv_close_device(model->context), 0);
    free(model);
}

void model_step(struct model *model)
{
    uint64_t choice = model_random(model, 100);
    if (choice < 12)
        model_make(model);
    else if (choice < 16)
        model_destroy(model);
    else if (choice < 17)
        model_spoil_handle(model);
    else if (choice < 27)
        model_connect(model);
    else if (choice < 29)
        model_move(model);
    else if (choice < 50)
        model_post_send(model);
    else if (choice < 72)
        model_post_receive(model);
    else
        model_poll(model, (int)model_random(model, CQS));
}
