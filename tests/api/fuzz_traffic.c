#include <errno.h>
#include <string.h>

#include "fuzz_model.h"
#include "harness.h"

enum { KEY = 0x1234, RECEIVES = 1 };

struct model_tally model_tally;

/* wr_id: whose work it is, of which queue, and its number there. */
static uint64_t make_id(uint64_t kind, int owner, unsigned number)
{
    return kind << 48 | (uint64_t)owner << 32 | number;
}

int model_choose_qp(struct model *model)
{
    int chosen = (int)model_random(model, QPS);
    return model->qps[chosen].qp ? chosen : -1;
}

enum ibv_qp_state model_true_state(struct model *model, struct model_qp *qp)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    MODEL_EXPECT(model, ibv_query_qp(qp->qp, &attr, IBV_QP_STATE, &init), 0);
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
    int error = ibv_modify_qp(qp->qp, &attr, IBV_QP_STATE);
    if (error && to == IBV_QPS_SQD) {
        MODEL_EXPECT(model, error, EINVAL);
        if (model_true_state(model, qp) == IBV_QPS_RTS)
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
static int to_ready(struct model *model, struct model_qp *qp, struct model_qp *peer, uint32_t psn)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = KEY, .path_mtu = IBV_MTU_1024};
    enum ibv_qp_type type = qp->qp->qp_type;
    bool datagram = type == IBV_QPT_UD, reliable = type == IBV_QPT_RC;
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    attr.dest_qp_num = peer->qp->qp_num;
    attr.ah_attr = (struct ibv_ah_attr){.is_global = 1, .port_num = 1};
    attr.max_rd_atomic = attr.max_dest_rd_atomic = 2;
    attr.min_rnr_timer = attr.rnr_retry = attr.retry_cnt = 1;
    attr.timeout = 8;
    attr.sq_psn = attr.rq_psn = psn;
    ibv_query_gid(model->context, 1, 0, &attr.ah_attr.grh.dgid);
    int error = ibv_modify_qp(
        qp->qp, &attr, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | (datagram ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
    attr.qp_state = IBV_QPS_RTR;
    if (!error)
        error = ibv_modify_qp(qp->qp, &attr,
                              IBV_QP_STATE |
                                  (datagram ? 0 : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN) |
                                  (reliable ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0));
    attr.qp_state = IBV_QPS_RTS;
    if (!error)
        error = ibv_modify_qp(
            qp->qp, &attr,
            IBV_QP_STATE | IBV_QP_SQ_PSN |
                (reliable ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0));
    if (!error && datagram && !qp->ah) {
        qp->ah = ibv_create_ah(qp->qp->pd, &attr.ah_attr);
        model->pds[qp->pd].uses += qp->ah != NULL;
        error = qp->ah ? 0 : errno;
    }
    return error;
}

static void reset(struct model *model, struct model_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
    MODEL_EXPECT(model, ibv_modify_qp(qp->qp, &attr, IBV_QP_STATE), 0);
    forget(qp);
}

/* Two queue pairs of one type, or one with itself, whatever state they are in. */
void model_connect(struct model *model)
{
    int first = model_choose_qp(model), second = (int)model_random(model, QPS);
    bool again = model_random(model, 6) == 0;
    if (first < 0 || (model->qps[first].state == IBV_QPS_RTS && !again))
        return;
    while (!model->qps[second].qp || model->qps[first].qp->qp_type != model->qps[second].qp->qp_type)
        second = (second + 1) % QPS;
    int both[] = {first, second};
    uint32_t psn = (uint32_t)model_random(model, 1 << 24);
    for (int i = 0; i < (first == second ? 1 : 2); i++)
        reset(model, &model->qps[both[i]]);
    for (int i = 0; i < (first == second ? 1 : 2); i++) {
        struct model_qp *qp = &model->qps[both[i]];
        MODEL_EXPECT(model, to_ready(model, qp, &model->qps[both[!i]], psn), 0);
        qp->state = IBV_QPS_RTS;
        qp->peer = both[!i];
    }
}

/* Mostly one of this PD that allows all, else any, else none. */
static const struct ibv_mr *choose_mr(struct model *model, int pd)
{
    uint64_t from = model_random(model, MRS), wild = model_random(model, 12);
    if (!wild)
        return model->mrs[from].mr;
    for (uint64_t i = from; i < from + MRS; i++)
        if (model->mrs[i % MRS].mr && model->mrs[i % MRS].pd == pd && model->mrs[i % MRS].all)
            return model->mrs[i % MRS].mr;
    return NULL;
}

/* A work request as it comes: good ones, and such as fail here or at the peer. */
static void make_send(struct model *model, int chosen, struct ibv_send_wr *wr, struct ibv_sge *sge)
{
    static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND,      IBV_WR_SEND_WITH_IMM,        IBV_WR_RDMA_WRITE,
                                                 IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_SEND};
    struct model_qp *qp = &model->qps[chosen];
    uintptr_t own = (uintptr_t)model->memory + (size_t)chosen * OWN;
    int peer_pd = qp->peer < 0 ? 0 : model->qps[qp->peer].pd;
    const struct ibv_mr *local = choose_mr(model, qp->pd), *remote = choose_mr(model, peer_pd);
    *wr = (struct ibv_send_wr){.sg_list = sge, .num_sge = 1, .opcode = opcodes[model_random(model, COUNT(opcodes))]};
    *sge = (struct ibv_sge){own, (uint32_t)model_random(model, 64), local ? local->lkey : 0};
    if (wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        sge->length = 8;
        wr->wr.atomic.remote_addr = own + TARGET;
        wr->wr.atomic.rkey = remote ? remote->rkey : 0;
    } else {
        wr->wr.rdma.remote_addr = own + TARGET;
        wr->wr.rdma.rkey = remote ? remote->rkey : 0;
    }
    if (model_random(model, 2))
        wr->send_flags |= IBV_SEND_SIGNALED;
    if (model_random(model, 4) == 0)
        wr->send_flags |= IBV_SEND_INLINE;
    if (model_random(model, 16) == 0)
        wr->num_sge = 2;
    if (qp->qp->qp_type == IBV_QPT_UD) {
        struct model_qp *peer = qp->peer < 0 || !model->qps[qp->peer].qp ? qp : &model->qps[qp->peer];
        wr->wr.ud.ah = qp->ah;
        wr->wr.ud.remote_qpn = peer->qp->qp_num;
        wr->wr.ud.remote_qkey = KEY;
    }
}

static bool may_do(enum ibv_qp_type type, enum ibv_wr_opcode opcode)
{
    bool sends = opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM;
    return type == IBV_QPT_RC || sends || (type == IBV_QPT_UC && opcode == IBV_WR_RDMA_WRITE);
}

static int expected_error(const struct model_qp *qp, const struct ibv_send_wr *wr)
{
    bool in_line = wr->send_flags & IBV_SEND_INLINE;
    bool nowhere = qp->qp->qp_type == IBV_QPT_UD && !wr->wr.ud.ah;
    if (qp->state == IBV_QPS_RESET || wr->num_sge > 1 || nowhere || !may_do(qp->qp->qp_type, wr->opcode))
        return EINVAL;
    if (in_line && (wr->opcode == IBV_WR_RDMA_READ || wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD))
        return EINVAL;
    if (qp->sends.tail - qp->sends.head >= DEPTH)
        return ENOMEM;
    return in_line && wr->sg_list->length > 16 ? EINVAL : 0;
}

void model_post_send(struct model *model)
{
    int chosen = model_choose_qp(model);
    struct ibv_send_wr wr, *bad = NULL;
    struct ibv_sge sge;
    if (chosen < 0)
        return;
    struct model_qp *qp = &model->qps[chosen];
    for (uint64_t count = 1 + model_random(model, 4); count; count--) {
        make_send(model, chosen, &wr, &sge);
        wr.wr_id = make_id(0, chosen, qp->sends.tail);
        int error = ibv_post_send(qp->qp, &wr, &bad);
        MODEL_EXPECT(model, error, expected_error(qp, &wr));
        if (error) {
            MODEL_EXPECT(model, bad == &wr, true);
            model_tally.refused++;
            continue;
        }
        qp->sends.signalled[qp->sends.tail++] = wr.send_flags & IBV_SEND_SIGNALED;
    }
}

static void post_to_srq(struct model *model, int at, struct ibv_recv_wr *wr)
{
    struct model_srq *srq = &model->srqs[at];
    struct ibv_recv_wr *bad = NULL;
    wr->wr_id = make_id(2, at, srq->posts);
    int error = ibv_post_srq_recv(srq->srq, wr, &bad);
    if (wr->num_sge > 1)
        MODEL_EXPECT(model, error, EINVAL);
    else if (srq->outstanding < DEPTH)
        MODEL_EXPECT(model, error, 0); /* there is room at least when so few were not polled */
    if (error)
        return;
    srq->waiting[srq->posts++] = true;
    srq->outstanding++;
}

static void post_to_qp(struct model *model, int at, struct ibv_recv_wr *wr)
{
    struct model_qp *qp = &model->qps[at];
    struct ibv_recv_wr *bad = NULL;
    wr->wr_id = make_id(RECEIVES, at, qp->receives.tail);
    int error = ibv_post_recv(qp->qp, wr, &bad);
    if (qp->srq >= 0 || qp->state == IBV_QPS_RESET || wr->num_sge > 1)
        MODEL_EXPECT(model, error, EINVAL);
    else if (qp->receives.tail - qp->receives.head < DEPTH)
        MODEL_EXPECT(model, error, 0);
    if (!error)
        qp->receives.tail++;
}

static uint32_t key_of(const struct ibv_mr *mr)
{
    return mr ? mr->lkey : 0;
}

void model_post_receive(struct model *model)
{
    int chosen = model_choose_qp(model), srq = (int)model_random(model, SRQS);
    for (uint64_t count = 1 + model_random(model, 4); count; count--) {
        struct ibv_sge sge = {.length = 128};
        struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
        if (model_random(model, 16) == 0)
            sge.length = (uint32_t)model_random(model, 64);
        if (model_random(model, 16) == 0)
            wr.num_sge = 2;
        if (model->srqs[srq].srq) {
            unsigned place = (unsigned)srq * SHARED_RECEIVES + model->srqs[srq].posts % SHARED_RECEIVES;
            sge.addr = (uintptr_t)model->memory + SHARED + place * SHARED_RECEIVE;
            sge.lkey = key_of(choose_mr(model, model->srqs[srq].pd));
            post_to_srq(model, srq, &wr);
        }
        if (chosen >= 0) {
            sge.addr = (uintptr_t)model->memory + (size_t)chosen * OWN + RECEIVED;
            sge.lkey = key_of(choose_mr(model, model->qps[chosen].pd));
            post_to_qp(model, chosen, &wr);
        }
    }
}

/* The next that must tell: those before it are unsignalled and went well. */
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
    if (!qp->qp || qp->qp->qp_num != wc->qp_num)
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
    if (!model->cqs[cq].cq)
        return;
    int most = 1 + (int)model_random(model, COUNT(wc)), taken = ibv_poll_cq(model->cqs[cq].cq, most, wc);
    if (taken < 0 || taken > most)
        model_fail(model, "ibv_poll_cq of %d gave %d", most, taken);
    for (int i = 0; i < taken; i++)
        completed(model, cq, &wc[i]);
}
