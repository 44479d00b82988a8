#include "srd_side.h"

#include <errno.h>
#include <infiniband/efadv.h>
#include <string.h>

#define VENDOR(answer, type, name, parameters, arguments) type name parameters;
#include "calls/efa.def"

enum {
    SILENT = 4000,     /* ms for which a sender waits at least; it is 4080 (docs/reference/srd.md) */
    RECEIVE = 1 << 30, /* in wr_id */
};

struct shared *shared;

static unsigned char pattern(uint32_t seed, uint32_t at)
{
    return (unsigned char)((seed * 31 + at) * 2654435761u >> 24);
}

static void fill(unsigned char *memory, uint32_t seed, uint32_t length)
{
    for (uint32_t at = 0; at < length; at++)
        memory[at] = pattern(seed, at);
}

static void compare(const unsigned char *memory, uint32_t seed, uint32_t from, uint32_t length, const char *what)
{
    for (uint32_t at = from; at < length; at++)
        if (memory[at] != pattern(seed, at))
            die("%s has another byte at %u of %u", what, at, length);
}

/* ---- the queue pair ---- */

static void go_to_rts(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = ENDPOINT_QKEY};
    errno = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
    attr.qp_state = IBV_QPS_RTR;
    errno = errno ? errno : ibv_modify_qp(qp, &attr, IBV_QP_STATE);
    attr.qp_state = IBV_QPS_RTS;
    errno = errno ? errno : ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
    if (errno)
        die("a queue pair of SRD does not go to RTS");
}

static struct ibv_qp *create_qp(struct endpoint *endpoint)
{
    struct efadv_qp_init_attr efa = {.driver_qp_type = EFADV_QP_DRIVER_TYPE_SRD};
    struct ibv_qp_init_attr_ex init = {.send_cq = endpoint->cq,
                                       .recv_cq = endpoint->cq,
                                       .cap = {DEPTH, RECEIVES, 1, 1, 0},
                                       .qp_type = IBV_QPT_DRIVER,
                                       .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                       .pd = endpoint->pd,
                                       .send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ |
                                                         IBV_QP_EX_WITH_RDMA_WRITE |
                                                         IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM};
    struct ibv_qp *qp = efadv_create_qp_ex(endpoint->context, &init, &efa, sizeof efa);
    if (!qp)
        die("no queue pair of SRD");
    go_to_rts(qp);
    return qp;
}

static struct ibv_mr *register_memory(struct side *side, void *memory, size_t size)
{
    struct ibv_mr *mr = ibv_reg_mr(side->endpoint.pd, memory, size,
                                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
    if (!mr)
        die("no memory region of %zu bytes", size);
    return mr;
}

static void post_receive(struct side *side, uint32_t place)
{
    struct ibv_sge sge = {(uintptr_t)side->in[place], MESSAGE, side->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = RECEIVE | place, .sg_list = &sge, .num_sge = 1}, *bad;
    errno = ibv_post_recv(side->qp, &wr, &bad);
    if (errno)
        die("ibv_post_recv fails");
}

void side_open(struct side *side, unsigned self)
{
    side->mine = &shared->chairs[self];
    side->theirs = &shared->chairs[!self];
    endpoint_open(&side->endpoint, 4 * RECEIVES);
    side->mr = register_memory(side, side, sizeof *side);
    side->shared = register_memory(side, side->mine, sizeof *side->mine);
    side->qp = create_qp(&side->endpoint);
    for (uint32_t place = 0; place < RECEIVES; place++)
        post_receive(side, place);
    fill(side->mine->source, side->mine->life, LONGEST);
    side->mine->address = endpoint_address(&side->endpoint, side->qp, side->shared);
}

void side_close(struct side *side)
{
    if (ibv_destroy_qp(side->qp) || ibv_dereg_mr(side->mr) || ibv_dereg_mr(side->shared) ||
        (side->ah && ibv_destroy_ah(side->ah)))
        die("something is still in use after the death");
    endpoint_close(&side->endpoint);
}

/* ---- work ---- */

static bool is_message(unsigned opcode)
{
    return opcode == IBV_WR_SEND || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static void build(struct side *side, struct ibv_qp_ex *qp, const struct request *work, uint32_t slot)
{
    uintptr_t target = (uintptr_t)side->theirs->target[slot], source = (uintptr_t)side->theirs->source;
    uint32_t rkey = side->theirs->address.rkey;
    if (work->code == IBV_WR_SEND)
        ibv_wr_send(qp);
    else if (work->code == IBV_WR_RDMA_READ)
        ibv_wr_rdma_read(qp, rkey, source);
    else if (work->code == IBV_WR_RDMA_WRITE)
        ibv_wr_rdma_write(qp, rkey, target);
    else
        ibv_wr_rdma_write_imm(qp, rkey, target, (uint32_t)(work->id / DEPTH));
    ibv_wr_set_sge(qp, side->mr->lkey, (uintptr_t)side->out[slot], work->length);
    ibv_wr_set_ud_addr(qp, side->ah, side->theirs->address.qp_num, ENDPOINT_QKEY);
}

void side_post(struct side *side)
{
    static const enum ibv_wr_opcode codes[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND,
                                               IBV_WR_RDMA_WRITE_WITH_IMM};
    static const uint32_t sizes[] = {8, LONGEST, 4096, 12000};
    uint32_t slot = 0, number = side->sequence++;
    while (side->requests[slot].open)
        slot++;
    struct request work = {(uint64_t)number * DEPTH + slot, codes[number % 5], sizes[number % 4], now_seconds(), true};
    if (work.code == IBV_WR_SEND && work.length > MESSAGE)
        work.length = MESSAGE;
    fill(side->out[slot], number, work.length);
    if (work.code == IBV_WR_SEND)
        memcpy(side->out[slot], &number, sizeof number);
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(side->qp);
    ibv_wr_start(qp);
    qp->wr_id = work.id;
    qp->wr_flags = IBV_SEND_SIGNALED;
    build(side, qp, &work, slot);
    errno = ibv_wr_complete(qp);
    if (errno)
        die("ibv_wr_complete fails");
    side->requests[slot] = work;
    side->outstanding++;
}

/* ---- completions ---- */

/* A message of another life is late: its own round has looked at it, or no work is waiting for it. */
static void take_arrival(struct side *side, const struct ibv_wc *wc)
{
    uint32_t place = (uint32_t)wc->wr_id & ~(uint32_t)RECEIVE, number = wc->imm_data;
    if (wc->status != IBV_WC_SUCCESS)
        die("a receive ends with %s", ibv_wc_status_str(wc->status));
    if (wc->opcode == IBV_WC_RECV)
        memcpy(&number, side->in[place], sizeof number);
    if (wc->src_qp == side->theirs->address.qp_num && number < KNOWN) {
        if (wc->opcode == IBV_WC_RECV)
            compare(side->in[place], number, sizeof number, wc->byte_len, "a message");
        if (side->arrived[number]++)
            die("message %u arrives twice", number);
    }
    post_receive(side, place);
}

/* It did what the completion says. */
static void check_success(struct side *side, const struct request *work, uint32_t slot)
{
    uint32_t number = (uint32_t)(work->id / DEPTH);
    side->heard = true;
    if (work->code == IBV_WR_RDMA_READ)
        compare(side->out[slot], side->life, 0, work->length, "what was read");
    else if (work->code != IBV_WR_SEND)
        compare(side->theirs->target[slot], number, 0, work->length, "what was written");
    if (is_message(work->code) && number < KNOWN)
        side->mine->succeeded[number] = true;
}

static bool may_end_so(const struct side *side, const struct request *work, unsigned code)
{
    static const unsigned codes[] = {NOBODY, STALE, UNHEARD};
    double waited = now_seconds() - work->posted;
    enum how how = side->theirs->how;
    if (code == FORGOT)
        return side->reused && !side->heard;
    if (!side->theirs->dead)
        return false;
    bool late = waited * 1e3 >= SILENT;
    /* Linux limits its ICMP answers to a destination (icmp(7)), so none may come for these packets. */
    bool unanswered = how == KILLED && shared->hosts[0] && code == (side->heard ? STALE : UNHEARD) && late;
    bool unheard = how == STOPPED && code == UNHEARD && !side->heard;
    return unanswered || ((code == codes[how] || unheard) && (how == KILLED || late));
}

static void note_wait(double waited, enum how how)
{
    shared->slowest[how] = waited > shared->slowest[how] ? waited : shared->slowest[how];
}

static void take_end(struct side *side, const struct ibv_wc *wc)
{
    uint32_t slot = (uint32_t)(wc->wr_id % DEPTH);
    struct request *work = &side->requests[slot];
    unsigned code = wc->vendor_err;
    if (!work->open || work->id != wc->wr_id)
        die("a completion for nothing");
    if ((wc->status == IBV_WC_SUCCESS) != (code == DONE) || (code && !may_end_so(side, work, code)))
        die("work ends with %s, code %u, after %.3f s; the other %s, and %s", ibv_wc_status_str(wc->status), code,
            now_seconds() - work->posted, side->theirs->dead ? "is dead" : "lives",
            side->heard ? "has answered" : "has not answered");
    if (code == DONE)
        check_success(side, work, slot);
    shared->ends[code < CODES ? code : NOBODY]++;
    if (code > FORGOT)
        note_wait(now_seconds() - work->posted, side->theirs->how);
    side->failed |= code > FORGOT;
    work->open = false;
    side->outstanding--;
}

int side_take(struct side *side, double seconds)
{
    struct ibv_wc wc[RECEIVES];
    int found = endpoint_wait(&side->endpoint, wc, RECEIVES, seconds);
    for (int i = 0; i < found; i++)
        if (wc[i].wr_id & RECEIVE && !(wc[i].wr_id >> 32))
            take_arrival(side, &wc[i]);
        else
            take_end(side, &wc[i]);
    return found;
}
