#include <errno.h>
#include <string.h>

#include "fuzz_model.h"
#include "harness.h"

enum { KEY = 0x1234, RECEIVES = 1 };

struct model_tally model_tally;

/* wr_id: the queue pair of the work, the queue, and the work's number there. */
static uint64_t make_id(uint64_t kind, int owner, unsigned number)
{
    return kind << 48 | (uint64_t)owner << 32 | number;
}

int model_choose_qp(struct model *model)
{
    int chosen = (int)model_random(model, QPS);
    return model->qps[chosen].qp == NOBODY ? -1 : chosen;
}

enum ibv_qp_state model_true_state(struct model *model, int at)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    MODEL_EXPECT(model, remote_query_qp(model_end_of(model, at), model->qps[at].qp, &attr, &init), 0);
    return attr.qp_state;
}

static void forget(struct model_qp *qp)
{
    memset(&qp->sends, 0, sizeof qp->sends);
    memset(&qp->receives, 0, sizeof qp->receives);
    qp->state = IBV_QPS_RESET;
}

/* ERR and RESET are allowed from everywhere; SQD only while the queue pair runs. */
void model_move(struct model *model)
{
    static const enum ibv_qp_state states[] = {IBV_QPS_ERR, IBV_QPS_ERR, IBV_QPS_SQD, IBV_QPS_RESET};
    int chosen = model_choose_qp(model);
    enum ibv_qp_state to = states[model_random(model, COUNT(states))];
    struct ibv_qp_attr attr = {.qp_state = to};
    if (chosen < 0)
        return;
    struct model_qp *qp = &model->qps[chosen];
    int error = remote_modify_qp(model_end_of(model, chosen), qp->qp, &attr, IBV_QP_STATE);
    if (error && to == IBV_QPS_SQD) {
        MODEL_EXPECT(model, error, EINVAL);
        if (model_true_state(model, chosen) == IBV_QPS_RTS)
            model_fail(model, "RTS to SQD is refused");
        return;
    }
    MODEL_EXPECT(model, error, 0);
    if (to == IBV_QPS_RESET)
        forget(qp);
    else
        qp->state = to;
}

/* A new PSN for each connection, as programs choose it, so that packets of the one before don't fit. */
static struct ibv_qp_attr describe(struct model *model, int at, int peer, uint32_t psn)
{
    struct ibv_qp_attr attr = {.port_num = 1, .qkey = KEY, .path_mtu = IBV_MTU_1024};
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    attr.dest_qp_num = model->qps[peer].number;
    attr.ah_attr = (struct ibv_ah_attr){.is_global = 1, .port_num = 1, .grh.dgid = model->gid};
    attr.max_rd_atomic = attr.max_dest_rd_atomic = 2;
    attr.min_rnr_timer = attr.rnr_retry = attr.retry_cnt = 1;
    attr.timeout = 8;
    attr.sq_psn = attr.rq_psn = psn;
    return attr;
}

static int to_ready(struct model *model, int at, int peer, uint32_t psn)
{
    struct model_qp *qp = &model->qps[at];
    struct remote_end *end = model_end_of(model, at);
    struct ibv_qp_attr attr = describe(model, at, peer, psn);
    bool datagram = qp->type == IBV_QPT_UD, reliable = qp->type == IBV_QPT_RC;
    attr.qp_state = IBV_QPS_INIT;
    int error = remote_modify_qp(end, qp->qp, &attr,
                                 IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX |
                                     (datagram ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
    attr.qp_state = IBV_QPS_RTR;
    if (!error)
        error = remote_modify_qp(end, qp->qp, &attr,
                                 IBV_QP_STATE |
                                     (datagram ? 0 : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN) |
                                     (reliable ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0));
    attr.qp_state = IBV_QPS_RTS;
    if (!error)
        error = remote_modify_qp(
            end, qp->qp, &attr,
            IBV_QP_STATE | IBV_QP_SQ_PSN |
                (reliable ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0));
    if (!error && datagram && qp->ah == NOBODY) {
        qp->ah = remote_create_ah(end, model->pds[qp->pd].pd, &attr.ah_attr);
        model->pds[qp->pd].uses += qp->ah != NOBODY;
        error = end->error;
    }
    return error;
}

static void reset(struct model *model, int at)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
    MODEL_EXPECT(model, remote_modify_qp(model_end_of(model, at), model->qps[at].qp, &attr, IBV_QP_STATE), 0);
    forget(&model->qps[at]);
}

/* Two queue pairs of one type, or one with itself, whatever state they are in. */
void model_connect(struct model *model)
{
    int first = model_choose_qp(model), second = (int)model_random(model, QPS);
    bool again = model_random(model, 24) == 0;
    if (first < 0 || (!again && model_true_state(model, first) == IBV_QPS_RTS))
        return;
    while (model->qps[second].qp == NOBODY || model->qps[first].type != model->qps[second].type)
        second = (second + 1) % QPS;
    int both[] = {first, second};
    uint32_t psn = (uint32_t)model_random(model, 1 << 24);
    for (int i = 0; i < (first == second ? 1 : 2); i++)
        reset(model, both[i]);
    for (int i = 0; i < (first == second ? 1 : 2); i++) {
        struct model_qp *qp = &model->qps[both[i]];
        int error = to_ready(model, both[i], both[!i], psn);
        /* A third that was connected to this number may still send to it, and what it sends may be an error (a message
         * that is too long for an SRQ's receive) before the queue pair is in RTS. */
        if (error == EINVAL && model_true_state(model, both[i]) == IBV_QPS_ERR)
            error = 0;
        MODEL_EXPECT(model, error, 0);
        qp->state = IBV_QPS_RTS;
        qp->peer = both[!i];
    }
}

/* Mostly one of this PD that allows all, else any, else no region. */
static const struct model_mr *choose_mr(struct model *model, int pd)
{
    uint64_t from = model_random(model, MRS), wild = model_random(model, 40);
    if (!wild) /* also of the other end, whose key means nothing here or something else */
        return model->mrs[from].mr == NOBODY ? NULL : &model->mrs[from];
    for (uint64_t i = from; i < from + MRS; i++)
        if (model->mrs[i % MRS].mr != NOBODY && model->mrs[i % MRS].pd == pd && model->mrs[i % MRS].all)
            return &model->mrs[i % MRS];
    return NULL;
}

static void name_target(struct ibv_send_wr *wr, uint64_t address, uint32_t rkey)
{
    if (wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr->wr.atomic.remote_addr = address;
        wr->wr.atomic.rkey = rkey;
    } else {
        wr->wr.rdma.remote_addr = address;
        wr->wr.rdma.rkey = rkey;
    }
}

/* A random work request: a good one, or one that fails here or at the peer. */
static struct send make_send(struct model *model, int chosen)
{
    static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND,      IBV_WR_SEND_WITH_IMM,        IBV_WR_RDMA_WRITE,
                                                 IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_SEND};
    const struct model_qp *qp = &model->qps[chosen];
    int peer = qp->peer < 0 || model->qps[qp->peer].qp == NOBODY ? chosen : qp->peer;
    const struct model_mr *local = choose_mr(model, qp->pd), *remote = choose_mr(model, model->qps[peer].pd);
    struct send send = {.wr = {.num_sge = 1, .opcode = opcodes[model_random(model, COUNT(opcodes))]}, .ah = qp->ah};
    struct ibv_send_wr *wr = &send.wr;
    uint64_t own = (uint64_t)chosen * OWN;
    send.sge[0] = (struct ibv_sge){model->memory[chosen % ENDS] + own, (uint32_t)model_random(model, 64),
                                   local ? local->lkey : 0};
    if (wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
        send.sge[0].length = 8;
    name_target(wr, model->memory[peer % ENDS] + own + TARGET, remote ? remote->rkey : 0);
    if (model_random(model, 2))
        wr->send_flags |= IBV_SEND_SIGNALED;
    if (model_random(model, 4) == 0)
        wr->send_flags |= IBV_SEND_INLINE;
    if (model_random(model, 16) == 0)
        wr->num_sge = 2;
    if (qp->type == IBV_QPT_UD) {
        wr->wr.ud.remote_qpn = model->qps[peer].number;
        wr->wr.ud.remote_qkey = KEY;
    }
    return send;
}

static bool may_do(enum ibv_qp_type type, enum ibv_wr_opcode opcode)
{
    bool sends = opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM;
    return type == IBV_QPT_RC || sends || (type == IBV_QPT_UC && opcode == IBV_WR_RDMA_WRITE);
}

static int expected_error(const struct model_qp *qp, const struct send *send)
{
    const struct ibv_send_wr *wr = &send->wr;
    bool in_line = wr->send_flags & IBV_SEND_INLINE;
    bool nowhere = qp->type == IBV_QPT_UD && qp->ah == NOBODY;
    if (qp->state == IBV_QPS_RESET || wr->num_sge > 1 || nowhere || !may_do(qp->type, wr->opcode))
        return EINVAL;
    if (in_line && (wr->opcode == IBV_WR_RDMA_READ || wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD))
        return EINVAL;
    if (qp->sends.tail - qp->sends.head >= DEPTH)
        return ENOMEM;
    return in_line && send->sge[0].length > 16 ? EINVAL : 0;
}

void model_post_send(struct model *model)
{
    int chosen = model_choose_qp(model), bad;
    if (chosen < 0)
        return;
    struct model_qp *qp = &model->qps[chosen];
    for (uint64_t count = 1 + model_random(model, 4); count; count--) {
        struct send send = make_send(model, chosen);
        send.wr.wr_id = make_id(0, chosen, qp->sends.tail);
        int error = remote_post_send(model_end_of(model, chosen), qp->qp, &send, 1, &bad);
        MODEL_EXPECT(model, error, expected_error(qp, &send));
        if (error) {
            MODEL_EXPECT(model, bad, 0);
            model_tally.refused++;
            continue;
        }
        qp->sends.signalled[qp->sends.tail++] = send.wr.send_flags & IBV_SEND_SIGNALED;
    }
}

static void post_to_srq(struct model *model, int at, struct receive *receive)
{
    struct model_srq *srq = &model->srqs[at];
    receive->wr.wr_id = make_id(2, at, srq->posts);
    int error = remote_post_srq(model_end_of(model, at), srq->srq, receive, 1, NULL);
    if (receive->wr.num_sge > 1)
        MODEL_EXPECT(model, error, EINVAL);
    else if (srq->outstanding < DEPTH)
        MODEL_EXPECT(model, error, 0); /* there is room at least when so few were not polled */
    if (error)
        return;
    srq->waiting[srq->posts++] = true;
    srq->outstanding++;
}

static void post_to_qp(struct model *model, int at, struct receive *receive)
{
    struct model_qp *qp = &model->qps[at];
    receive->wr.wr_id = make_id(RECEIVES, at, qp->receives.tail);
    int error = remote_post_receive(model_end_of(model, at), qp->qp, receive, 1, NULL);
    if (qp->srq >= 0 || qp->state == IBV_QPS_RESET || receive->wr.num_sge > 1)
        MODEL_EXPECT(model, error, EINVAL);
    else if (qp->receives.tail - qp->receives.head < DEPTH)
        MODEL_EXPECT(model, error, 0);
    if (!error)
        qp->receives.tail++;
}

static struct receive make_receive(struct model *model)
{
    struct receive receive = {.wr = {.num_sge = 1}};
    receive.sge[0].length = model_random(model, 16) ? 128 : (uint32_t)model_random(model, 64);
    if (model_random(model, 16) == 0)
        receive.wr.num_sge = 2;
    return receive;
}

static void aim(struct model *model, struct receive *receive, int place, int pd, uint64_t offset)
{
    const struct model_mr *mr = choose_mr(model, pd);
    receive->sge[0].addr = model->memory[place % ENDS] + offset;
    receive->sge[0].lkey = mr ? mr->lkey : 0;
}

void model_post_receive(struct model *model)
{
    int chosen = model_choose_qp(model), srq = (int)model_random(model, SRQS);
    for (uint64_t count = 1 + model_random(model, 4); count; count--) {
        struct receive receive = make_receive(model);
        if (model->srqs[srq].srq != NOBODY) {
            unsigned place = (unsigned)srq * SHARED_RECEIVES + model->srqs[srq].posts % SHARED_RECEIVES;
            aim(model, &receive, srq, model->srqs[srq].pd, SHARED + place * SHARED_RECEIVE);
            post_to_srq(model, srq, &receive);
        }
        if (chosen >= 0) {
            aim(model, &receive, chosen, model->qps[chosen].pd, (uint64_t)chosen * OWN + RECEIVED);
            post_to_qp(model, chosen, &receive);
        }
    }
}

/* The next completion that is due: the requests before it are unsignalled and succeeded. */
static void completed_send(struct model *model, struct model_qp *qp, const struct ibv_wc *wc)
{
    struct model_queue *queue = &qp->sends;
    unsigned number = (uint32_t)wc->wr_id;
    if (number < queue->head || number >= queue->tail)
        model_fail(model, "send %u completed, but %u to %u are outstanding", number, queue->head, queue->tail);
    if (!queue->signalled[number] && wc->status == IBV_WC_SUCCESS)
        model_fail(model, "unsignalled send %u that went well has a completion", number);
    for (; queue->head < number; queue->head++)
        if (queue->signalled[queue->head])
            model_fail(model, "send %u completed before %u", number, queue->head);
    queue->head++;
}

static void completed_receive(struct model *model, struct model_qp *qp, const struct ibv_wc *wc)
{
    MODEL_EXPECT(model, (uint32_t)wc->wr_id, qp->receives.head);
    if (qp->receives.head++ == qp->receives.tail)
        model_fail(model, "a receive completed that was not posted");
}

static void completed_shared(struct model *model, int at, const struct ibv_wc *wc)
{
    struct model_srq *srq = &model->srqs[at];
    unsigned number = (uint32_t)wc->wr_id;
    if (number >= srq->posts || !srq->waiting[number])
        model_fail(model, "shared receive %u completed, but does not wait", number);
    srq->waiting[number] = false;
    srq->outstanding--;
}

static void count(enum ibv_wc_status status)
{
    if (status == IBV_WC_SUCCESS)
        model_tally.succeeded++;
    else if (status == IBV_WC_WR_FLUSH_ERR)
        model_tally.flushed++;
    else
        model_tally.failed++;
}

static void completed(struct model *model, int cq, const struct ibv_wc *wc)
{
    count(wc->status);
    int owner = (int)(wc->wr_id >> 32 & 0xffff), kind = (int)(wc->wr_id >> 48);
    if (kind == 2)
        return completed_shared(model, owner, wc);
    struct model_qp *qp = &model->qps[owner];
    if (qp->qp == NOBODY || qp->number != wc->qp_num)
        model_fail(model, "a completion of queue pair 0x%x, which is gone", wc->qp_num);
    MODEL_EXPECT(model, cq, kind == RECEIVES ? qp->receive_cq : qp->send_cq);
    if (qp->state == IBV_QPS_RESET)
        model_fail(model, "a completion of a queue pair in RESET");
    if (kind == RECEIVES)
        completed_receive(model, qp, wc);
    else
        completed_send(model, qp, wc);
}

void model_poll(struct model *model, int cq)
{
    struct ibv_wc wc[16];
    if (model->cqs[cq].cq == NOBODY)
        return;
    int most = 1 + (int)model_random(model, COUNT(wc));
    int taken = remote_poll(model_end_of(model, cq), model->cqs[cq].cq, most, wc, 0);
    if (taken < 0 || taken > most)
        model_fail(model, "ibv_poll_cq of %d gave %d", most, taken);
    for (int i = 0; i < taken; i++)
        completed(model, cq, &wc[i]);
}
