#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "end_objects.h"
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
    for (int i = 0; i < 90; i++)
        model_make(model);
    for (int i = 0; i < 20; i++)
        model_connect(model);
}

int model_random_beside(struct model *model, int place, int places)
{
    return (int)model_random(model, (uint64_t)places / ENDS) * ENDS + place % ENDS;
}

struct remote_end *model_end_of(struct model *model, int place)
{
    return model->ends[place % ENDS];
}

static void begin_empty(struct model *model)
{
    for (int i = 0; i < PDS; i++)
        model->pds[i].pd = NOBODY;
    for (int i = 0; i < MRS; i++)
        model->mrs[i].mr = NOBODY;
    for (int i = 0; i < CQS; i++)
        model->cqs[i].cq = NOBODY;
    for (int i = 0; i < SRQS; i++)
        model->srqs[i].srq = NOBODY;
    for (int i = 0; i < QPS; i++)
        model->qps[i] = (struct model_qp){.qp = NOBODY, .ah = NOBODY, .peer = -1};
}

struct model *model_create(uint64_t seed)
{
    struct model *model = calloc(1, sizeof *model);
    EXPECT_TRUE(model);
    model->seed = seed;
    model->random = seed * 0x9e3779b97f4a7c15ull + 1;
    model->ends[0] = harness_near();
    model->ends[1] = harness_far();
    begin_empty(model);
    for (int i = 0; i < ENDS; i++) {
        MODEL_EXPECT(model, remote_open(model->ends[i], 0), 0);
        model->gid = model->ends[i]->call.about.gid;
        model->memory[i] = remote_memory(model->ends[i], MEMORY);
    }
    if (model_random(model, 8))
        populate(model);
    return model;
}

static void make_pd(struct model *model, int at)
{
    model->pds[at] = (struct model_pd){.pd = remote_alloc_pd(model_end_of(model, at))};
    if (model->pds[at].pd == NOBODY)
        model_fail(model, "ibv_alloc_pd: errno %d", model_end_of(model, at)->error);
}

static void make_mr(struct model *model, int at)
{
    enum { ALL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC };
    static const int access[] = {0,   IBV_ACCESS_LOCAL_WRITE, ALL, ALL, ALL,
                                 ALL, IBV_ACCESS_REMOTE_WRITE /* without LOCAL_WRITE: refused */};
    struct remote_end *end = model_end_of(model, at);
    int pd = model_random_beside(model, at, PDS), chosen = access[model_random(model, COUNT(access))];
    if (model->pds[pd].pd == NOBODY)
        return;
    int mr = remote_reg_mr(end, model->pds[pd].pd, model->memory[at % ENDS], MEMORY, chosen);
    MODEL_EXPECT(model, mr == NOBODY, chosen == IBV_ACCESS_REMOTE_WRITE);
    if (mr == NOBODY) {
        MODEL_EXPECT(model, end->error, EINVAL);
        return;
    }
    model->mrs[at] = (struct model_mr){mr, pd, chosen == ALL, end->call.about.lkey, end->call.about.rkey};
    model->pds[pd].uses++;
}

static void make_cq(struct model *model, int at)
{
    model->cqs[at] = (struct model_cq){.cq = remote_create_cq(model_end_of(model, at), CQE, NOBODY, 0)};
    if (model->cqs[at].cq == NOBODY)
        model_fail(model, "ibv_create_cq: errno %d", model_end_of(model, at)->error);
}

static void make_srq(struct model *model, int at)
{
    struct ibv_srq_attr attr = {.max_wr = DEPTH, .max_sge = 1};
    int pd = model_random_beside(model, at, PDS);
    if (model->pds[pd].pd == NOBODY)
        return;
    model->srqs[at] =
        (struct model_srq){.srq = remote_create_srq(model_end_of(model, at), model->pds[pd].pd, &attr), .pd = pd};
    if (model->srqs[at].srq == NOBODY)
        model_fail(model, "ibv_create_srq: errno %d", model_end_of(model, at)->error);
    model->pds[pd].uses++;
}

static void describe_qp(struct model *model, int at, struct model_qp *qp)
{
    static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
    *qp = (struct model_qp){.qp = NOBODY, .ah = NOBODY, .peer = -1};
    qp->pd = model_random_beside(model, at, PDS);
    qp->send_cq = model_random_beside(model, at, CQS);
    qp->receive_cq = model_random_beside(model, at, CQS);
    qp->srq = model_random(model, 3) ? -1 : model_random_beside(model, at, SRQS);
    qp->type = types[model_random(model, COUNT(types))];
    if (qp->srq >= 0 && model->srqs[qp->srq].srq == NOBODY)
        qp->srq = -1;
}

static void make_qp(struct model *model, int at)
{
    struct model_qp *qp = &model->qps[at];
    describe_qp(model, at, qp);
    struct ibv_qp_init_attr attr = {
        .qp_type = qp->type,
        .cap = {
            .max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 16}};
    int send_cq = model->cqs[qp->send_cq].cq, receive_cq = model->cqs[qp->receive_cq].cq;
    if (model->pds[qp->pd].pd == NOBODY)
        return;
    qp->qp = remote_create_qp(model_end_of(model, at), model->pds[qp->pd].pd, send_cq, receive_cq,
                              qp->srq < 0 ? NOBODY : model->srqs[qp->srq].srq, &attr);
    MODEL_EXPECT(model, qp->qp == NOBODY, send_cq == NOBODY || receive_cq == NOBODY);
    if (qp->qp == NOBODY)
        return;
    qp->number = (uint32_t)model_end_of(model, at)->call.number[0];
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
        return model->pds[pd].pd == NOBODY ? make_pd(model, pd) : (void)0;
    case 1:
        return model->cqs[cq].cq == NOBODY ? make_cq(model, cq) : (void)0;
    case 2:
        return model->mrs[mr].mr == NOBODY ? make_mr(model, mr) : (void)0;
    case 3:
        return model->srqs[srq].srq == NOBODY ? make_srq(model, srq) : (void)0;
    default:
        return model->qps[qp].qp == NOBODY ? make_qp(model, qp) : (void)0;
    }
}

/* True when the object is gone; it is, unless it has users. */
static bool destroy(struct model *model, enum kind kind, int place, int number, int uses)
{
    if (number == NOBODY)
        return false;
    MODEL_EXPECT(model, remote_destroy(model_end_of(model, place), kind, number), uses ? EBUSY : 0);
    return !uses;
}

static void destroy_qp(struct model *model, int at)
{
    struct model_qp *qp = &model->qps[at];
    if (destroy(model, KIND_AH, at, qp->ah, 0))
        model->pds[qp->pd].uses--;
    if (!destroy(model, KIND_QP, at, qp->qp, 0))
        return;
    model->pds[qp->pd].uses--;
    model->cqs[qp->send_cq].uses--;
    model->cqs[qp->receive_cq].uses--;
    if (qp->srq >= 0)
        model->srqs[qp->srq].uses--;
    *qp = (struct model_qp){.qp = NOBODY, .ah = NOBODY, .peer = -1};
}

static void destroy_mr(struct model *model, int at)
{
    struct model_mr *mr = &model->mrs[at];
    if (!destroy(model, KIND_MR, at, mr->mr, 0))
        return;
    model->pds[mr->pd].uses--;
    mr->mr = NOBODY;
}

static void destroy_srq(struct model *model, int at)
{
    struct model_srq *srq = &model->srqs[at];
    if (!destroy(model, KIND_SRQ, at, srq->srq, srq->uses))
        return;
    model->pds[srq->pd].uses--;
    srq->srq = NOBODY;
}

static void destroy_cq(struct model *model, int at)
{
    if (destroy(model, KIND_CQ, at, model->cqs[at].cq, model->cqs[at].uses))
        model->cqs[at].cq = NOBODY;
}

static void destroy_pd(struct model *model, int at)
{
    if (destroy(model, KIND_PD, at, model->pds[at].pd, model->pds[at].uses))
        model->pds[at].pd = NOBODY;
}

void model_destroy(struct model *model)
{
    switch (model_random(model, 8)) {
    case 0:
    case 1:
        return destroy_pd(model, (int)model_random(model, PDS));
    case 2:
    case 3:
        return destroy_cq(model, (int)model_random(model, CQS));
    case 4:
        return destroy_srq(model, (int)model_random(model, SRQS));
    case 5:
        return destroy_mr(model, (int)model_random(model, MRS));
    default:
        return destroy_qp(model, (int)model_random(model, QPS));
    }
}

/* A call with an overwritten handle is an error, and nothing is harmed. Objects of this process only: it has no handles
 * of the other's objects. */
void model_spoil_handle(struct model *model)
{
    int qp = (int)model_random(model, QPS), cq = (int)model_random(model, CQS), mr = (int)model_random(model, MRS);
    uint32_t noise = (uint32_t)model_random(model, 1u << 31) + 1;
    if (model->qps[qp].qp != NOBODY && model_end_of(model, qp)->objects) {
        struct ibv_qp *object = end_object(model_end_of(model, qp)->objects, KIND_QP, model->qps[qp].qp);
        object->handle ^= noise;
        MODEL_EXPECT(model, ibv_destroy_qp(object), ENOENT);
        object->handle ^= noise;
    }
    if (model->cqs[cq].cq != NOBODY && model_end_of(model, cq)->objects) {
        struct ibv_cq *object = end_object(model_end_of(model, cq)->objects, KIND_CQ, model->cqs[cq].cq);
        object->handle ^= noise;
        MODEL_EXPECT(model, ibv_destroy_cq(object), ENOENT);
        object->handle ^= noise;
    }
    if (model->mrs[mr].mr != NOBODY && model_end_of(model, mr)->objects) {
        struct ibv_mr *object = end_object(model_end_of(model, mr)->objects, KIND_MR, model->mrs[mr].mr);
        object->handle ^= noise;
        MODEL_EXPECT(model, ibv_dereg_mr(object), ENOENT);
        object->handle ^= noise;
    }
}

/* Once every queue pair is in ERR, all work must complete; unsignalled work that succeeded may be silent. */
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

void model_finish(struct model *model)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    for (int i = 0; i < QPS; i++)
        if (model->qps[i].qp != NOBODY && model->qps[i].state != IBV_QPS_RESET)
            MODEL_EXPECT(model, remote_modify_qp(model_end_of(model, i), model->qps[i].qp, &attr, IBV_QP_STATE), 0);
    for (int round = 0; round < 1000 && (!round || !is_over(model)); round++)
        for (int cq = 0; cq < CQS; cq++)
            model_poll(model, cq);
    if (!is_over(model))
        model_fail(model, "in the end some work has not completed");
    for (int i = 0; i < QPS; i++)
        destroy_qp(model, i);
    for (int i = 0; i < MRS; i++)
        destroy_mr(model, i);
    for (int i = 0; i < SRQS; i++)
        destroy_srq(model, i);
    for (int i = 0; i < CQS; i++)
        destroy_cq(model, i);
    for (int i = 0; i < PDS; i++) {
        destroy_pd(model, i);
        if (model->pds[i].pd != NOBODY)
            model_fail(model, "the model counts its uses wrongly");
    }
    for (int i = 0; i < ENDS; i++)
        MODEL_EXPECT(model, remote_clear(model->ends[i]), 0);
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
