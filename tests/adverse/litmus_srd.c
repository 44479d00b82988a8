/* Litmus tests of scalable reliable datagrams: two queue pairs of one process, each with one address handle. */
#include <infiniband/efadv.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/testing/patience.h"
#include "litmus.h"

#define VENDOR(answer, type, name, parameters, arguments) type name parameters;
#include "calls/efa.def"

enum { QKEY = 0x11111111, MESSAGES = 16, PACKETS = 4, PACKET = 8192, LONG = PACKETS * PACKET, SEND_LONG = 8000 };

/* The memory: what is sent or written, then what is received or read. */
enum { HALF = MESSAGES * PACKET, BYTES = 2 * HALF };

struct litmus_srd {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *cqs[2]; /* of sends, of receives */
    struct ibv_qp *from, *to;
    struct ibv_ah *ah;
    struct ibv_mr *mr;
    volatile char *memory;
};

static struct ibv_qp *make_qp(struct litmus_srd *srd)
{
    struct ibv_qp_init_attr_ex init = {.send_cq = srd->cqs[0],
                                       .recv_cq = srd->cqs[1],
                                       .qp_type = IBV_QPT_DRIVER,
                                       .cap = {64, 64, 1, 1, 0},
                                       .pd = srd->pd,
                                       .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                       .send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ |
                                                         IBV_QP_EX_WITH_RDMA_WRITE |
                                                         IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM};
    struct efadv_qp_init_attr efa = {.driver_qp_type = EFADV_QP_DRIVER_TYPE_SRD};
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
    struct ibv_qp *qp = efadv_create_qp_ex(srd->context, &init, &efa, sizeof efa);
    MUST(qp && !ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
    attr.qp_state = IBV_QPS_RTR;
    MUST(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
    attr.qp_state = IBV_QPS_RTS;
    MUST(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
    return qp;
}

void litmus_open(struct litmus *litmus)
{
    struct litmus_srd *srd = calloc(1, sizeof *srd);
    struct ibv_device **devices = ibv_get_device_list(NULL);
    struct ibv_ah_attr route = {.is_global = 1, .port_num = 1};
    MUST(srd && devices && *devices && (srd->context = ibv_open_device(*devices)));
    ibv_free_device_list(devices);
    *litmus = (struct litmus){.srd = srd};
    MUST(srd->memory = aligned_alloc(4096, BYTES));
    MUST(srd->pd = ibv_alloc_pd(srd->context));
    for (int i = 0; i < 2; i++)
        MUST(srd->cqs[i] = ibv_create_cq(srd->context, 256, NULL, NULL, 0));
    MUST(srd->mr = ibv_reg_mr(srd->pd, (void *)(uintptr_t)srd->memory, BYTES,
                              IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE));
    srd->from = make_qp(srd);
    srd->to = make_qp(srd);
    MUST(!ibv_query_gid(srd->context, 1, 0, &route.grh.dgid) && (srd->ah = ibv_create_ah(srd->pd, &route)));
}

void litmus_close(struct litmus *litmus)
{
    struct litmus_srd *srd = litmus->srd;
    MUST(!ibv_destroy_qp(srd->from) && !ibv_destroy_qp(srd->to) && !ibv_destroy_ah(srd->ah));
    MUST(!ibv_destroy_cq(srd->cqs[0]) && !ibv_destroy_cq(srd->cqs[1]) && !ibv_dereg_mr(srd->mr));
    MUST(!ibv_dealloc_pd(srd->pd) && !ibv_close_device(srd->context));
    free((void *)(uintptr_t)srd->memory);
    free(srd);
}

/* The first half has the message's number in each byte, which is never 0, and the second half nothing. */
void litmus_begin_trial(struct litmus *litmus)
{
    char *memory = (char *)(uintptr_t)litmus->srd->memory;
    for (int i = 0; i < MESSAGES; i++)
        memset(memory + i * PACKET, i + 1, PACKET);
    memset(memory + HALF, 0, HALF);
}

/* From this place of the first half to the same place of the second one; a READ the other way round. */
static void post(struct litmus_srd *srd, enum ibv_wr_opcode opcode, unsigned place, unsigned length)
{
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(srd->from);
    uintptr_t far = (uintptr_t)srd->memory + HALF + place;
    ibv_wr_start(qp);
    qp->wr_id = place / PACKET;
    qp->wr_flags = IBV_SEND_SIGNALED;
    if (opcode == IBV_WR_SEND)
        ibv_wr_send(qp);
    else if (opcode == IBV_WR_RDMA_WRITE)
        ibv_wr_rdma_write(qp, srd->mr->rkey, far);
    else if (opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
        ibv_wr_rdma_write_imm(qp, srd->mr->rkey, far, 0);
    else
        ibv_wr_rdma_read(qp, srd->mr->rkey, (uintptr_t)srd->memory + place);
    ibv_wr_set_ud_addr(qp, srd->ah, srd->to->qp_num, QKEY);
    ibv_wr_set_sge(qp, srd->mr->lkey, opcode == IBV_WR_RDMA_READ ? far : (uintptr_t)srd->memory + place, length);
    MUST(!ibv_wr_complete(qp));
}

static void receive(struct litmus_srd *srd, unsigned place, unsigned length)
{
    struct ibv_sge piece = {(uintptr_t)srd->memory + HALF + place, length, srd->mr->lkey};
    struct ibv_recv_wr *bad, work = {.wr_id = place / PACKET, .sg_list = &piece, .num_sge = length != 0};
    MUST(!ibv_post_recv(srd->to, &work, &bad));
}

/* Returns the work's number; -1: there is no completion. */
static int try_poll(struct ibv_cq *cq)
{
    struct ibv_wc entry;
    int count = ibv_poll_cq(cq, 1, &entry);
    MUST(count >= 0 && (!count || entry.status == IBV_WC_SUCCESS));
    return count ? (int)entry.wr_id : -1;
}

static int poll_one(struct ibv_cq *cq)
{
    int number = -1;
    PATIENTLY_WHILE((number = try_poll(cq)) < 0);
    MUST(number >= 0);
    return number;
}

static bool has_bytes(const struct litmus_srd *srd, unsigned place, unsigned length, char first)
{
    for (unsigned i = 0; i < length; i++)
        if (srd->memory[HALF + place + i] != first + (char)(i / PACKET))
            return false;
    return true;
}

struct messages {
    unsigned late, twice, wrong, sent_late;
};

static struct messages send_messages(struct litmus_srd *srd)
{
    struct messages found = {0};
    unsigned seen = 0;
    int before = -1;
    for (unsigned i = 0; i < MESSAGES; i++)
        receive(srd, i * PACKET, 64);
    for (unsigned i = 0; i < MESSAGES; i++)
        post(srd, IBV_WR_SEND, i * PACKET, 64);
    for (unsigned i = 0; i < MESSAGES; i++) {
        unsigned place = (unsigned)poll_one(srd->cqs[1]) * PACKET;
        int number = srd->memory[HALF + place] - 1;
        bool whole = number >= 0 && number < MESSAGES && has_bytes(srd, place, 64, (char)(number + 1));
        found.wrong += !whole;
        found.twice += whole && seen >> number & 1;
        found.late += number < before;
        seen |= whole ? 1u << number : 0;
        before = number;
    }
    before = -1;
    for (unsigned i = 0; i < MESSAGES; i++) {
        int number = poll_one(srd->cqs[0]);
        found.sent_late += number < before;
        before = number;
    }
    return found;
}

bool litmus_S1(struct litmus *litmus)
{
    return send_messages(litmus->srd).late;
}

bool litmus_S2(struct litmus *litmus)
{
    struct messages found = send_messages(litmus->srd);
    return found.twice || found.wrong;
}

bool litmus_S3(struct litmus *litmus)
{
    return send_messages(litmus->srd).sent_late;
}

/* Returns true if the later of two places is filled before the earlier one, until this queue has a completion. */
static bool is_passed(const struct litmus_srd *srd, unsigned earlier, unsigned later, struct ibv_cq *cq)
{
    bool passed = false;
    PATIENTLY_WHILE(try_poll(cq) < 0)
    {
        char last = srd->memory[HALF + later];
        atomic_thread_fence(memory_order_seq_cst);
        passed |= last && !srd->memory[HALF + earlier];
    }
    return passed;
}

bool litmus_S4(struct litmus *litmus)
{
    post(litmus->srd, IBV_WR_RDMA_WRITE, 0, LONG);
    return is_passed(litmus->srd, 0, LONG - 1, litmus->srd->cqs[0]);
}

bool litmus_S5(struct litmus *litmus)
{
    receive(litmus->srd, 0, 0);
    post(litmus->srd, IBV_WR_RDMA_WRITE_WITH_IMM, 0, LONG);
    poll_one(litmus->srd->cqs[1]);
    bool old = !has_bytes(litmus->srd, 0, LONG, 1);
    poll_one(litmus->srd->cqs[0]);
    return old;
}

bool litmus_S6(struct litmus *litmus)
{
    post(litmus->srd, IBV_WR_RDMA_READ, 0, LONG);
    poll_one(litmus->srd->cqs[0]);
    return !has_bytes(litmus->srd, 0, LONG, 1);
}

bool litmus_S7(struct litmus *litmus)
{
    post(litmus->srd, IBV_WR_RDMA_WRITE, 0, 8);
    post(litmus->srd, IBV_WR_RDMA_WRITE, PACKET, 8);
    bool passed = is_passed(litmus->srd, 0, PACKET, litmus->srd->cqs[0]);
    passed |= is_passed(litmus->srd, 0, PACKET, litmus->srd->cqs[0]);
    return passed;
}

bool litmus_S8(struct litmus *litmus)
{
    post(litmus->srd, IBV_WR_RDMA_WRITE, 0, 8);
    bool passed = is_passed(litmus->srd, 0, PACKET, litmus->srd->cqs[0]);
    post(litmus->srd, IBV_WR_RDMA_WRITE, PACKET, 8);
    return passed | is_passed(litmus->srd, 0, PACKET, litmus->srd->cqs[0]);
}

bool litmus_S9(struct litmus *litmus)
{
    receive(litmus->srd, 0, SEND_LONG);
    post(litmus->srd, IBV_WR_SEND, 0, SEND_LONG);
    bool passed = is_passed(litmus->srd, 0, SEND_LONG - 1, litmus->srd->cqs[1]);
    poll_one(litmus->srd->cqs[0]);
    return passed;
}
