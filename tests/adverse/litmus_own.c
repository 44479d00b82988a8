/* Litmus tests with separate queue pairs. */
#include "litmus.h"

#include <sched.h>
#include <string.h>
#include <sys/poll.h>
#include <sys/resource.h>
#include <time.h>

#include "base/testing/patience.h"

static const struct loopback_options options = {.entries = 256};

#define CQ litmus->ends.cq

static void make_pair(struct litmus *litmus, struct ibv_qp *pair[2])
{
    for (int i = 0; i < 2; i++)
        pair[i] = loopback_make_qp(&litmus->ends, &options);
    for (int i = 0; i < 2; i++)
        loopback_connect(&litmus->ends, pair[i], pair[!i]->qp_num, &options);
}

static void destroy_pair(struct ibv_qp *pair[2])
{
    MUST(!ibv_destroy_qp(pair[0]) && !ibv_destroy_qp(pair[1]));
}

static struct ibv_wc poll_any(struct ibv_cq *cq)
{
    struct ibv_wc entry;
    time_t begun = time(NULL);
    while (!ibv_poll_cq(cq, 1, &entry))
        MUST((double)(time(NULL) - begun) < PATIENCE_SECONDS);
    return entry;
}

bool litmus_P10(struct litmus *litmus)
{
    struct ibv_qp *pair[2];
    struct ibv_sge piece = {(uintptr_t)litmus->r, 8, litmus->ends.mr->lkey};
    struct ibv_send_wr *bad,
        work = {.sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_RDMA_READ, .send_flags = SIGNALLED};
    make_pair(litmus, pair);
    work.wr.rdma.remote_addr = (uintptr_t)litmus->x;
    work.wr.rdma.rkey = litmus->ends.mr->rkey ^ 1;
    MUST(!ibv_post_send(pair[0], &work, &bad));
    struct ibv_wc entry = poll_any(CQ);
    MUST(entry.status == IBV_WC_REM_ACCESS_ERR && entry.qp_num == pair[0]->qp_num);
    destroy_pair(pair);
    return entry.opcode != IBV_WC_RDMA_READ;
}

/* Milliseconds. */
static bool takes_event(const struct litmus *litmus, int wait)
{
    struct pollfd file = {.fd = litmus->ends.context->async_fd, .events = POLLIN};
    struct ibv_async_event event;
    if (poll(&file, 1, wait) <= 0)
        return false;
    MUST(!ibv_get_async_event(litmus->ends.context, &event) && event.event_type == IBV_EVENT_COMM_EST);
    ibv_ack_async_event(&event);
    return true;
}

/* One end is still in RTR. Answers whether COMM_EST was there with the receive, and whether it was raised. */
static bool establish(struct litmus *litmus, bool *came)
{
    struct ibv_qp *pair[2];
    struct ibv_sge piece = {(uintptr_t)litmus->r, 8, litmus->ends.mr->lkey};
    struct ibv_recv_wr *bad, receive = {.sg_list = &piece, .num_sge = 1};
    for (int i = 0; i < 2; i++)
        pair[i] = loopback_make_qp(&litmus->ends, &options);
    loopback_listen(&litmus->ends, pair[1], pair[0]->qp_num, &options);
    loopback_connect(&litmus->ends, pair[0], pair[1]->qp_num, &options);
    MUST(!ibv_post_recv(pair[1], &receive, &bad));
    litmus_post(pair[0], litmus, IBV_WR_SEND, litmus->y, NULL, 8, 0);
    litmus_poll(CQ, 1);
    bool there = takes_event(litmus, 0);
    *came = there || takes_event(litmus, PATIENCE);
    destroy_pair(pair);
    return there;
}

bool litmus_P11(struct litmus *litmus)
{
    bool came;
    return !establish(litmus, &came);
}

bool litmus_P12(struct litmus *litmus)
{
    bool came;
    establish(litmus, &came);
    return !came;
}

bool litmus_P15(struct litmus *litmus)
{
    struct ibv_qp *qp;
    struct ibv_qp_init_attr init = {
        .send_cq = CQ, .recv_cq = CQ, .cap = {.max_send_wr = 1, .max_send_sge = 4}, .qp_type = IBV_QPT_RC};
    MUST(qp = ibv_create_qp(litmus->ends.pd, &init));
    MUST(!ibv_destroy_qp(qp));
    return !init.cap.max_inline_data;
}

bool litmus_P23(struct litmus *litmus)
{
    struct ibv_cq_ex *cq;
    struct ibv_cq_init_attr_ex attr = {.cqe = 1, .wc_flags = IBV_WC_EX_WITH_QP_NUM};
    MUST((cq = ibv_create_cq_ex(litmus->ends.context, &attr)) && cq->read_qp_num && cq->read_opcode);
    bool lacks = !cq->read_byte_len && !cq->read_imm_data;
    MUST(!ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
    return lacks;
}

/* --- order of completions */

bool litmus_P16(struct litmus *litmus)
{
    struct ibv_wc entry;
    litmus_receive(litmus->on_armed, litmus, litmus->y, 8);
    litmus_post(litmus->to_armed, litmus, IBV_WR_SEND, litmus->r, NULL, 8, SIGNALLED);
    litmus_poll(CQ, 1);
    bool late = !ibv_poll_cq(litmus->armed, 1, &entry);
    if (late)
        litmus_poll(litmus->armed, 1);
    return late;
}

/* All is in one queue, whose completions keep their order. The second queue pair's receive may precede the first one's
 * completion. */
bool litmus_P17(struct litmus *litmus)
{
    struct ibv_qp *first = litmus->ends.qp[0], *second = litmus->more[0];
    uint32_t completed[2];
    unsigned sends = 0, receives = 0;
    litmus_receive(NULL, litmus, litmus->x, 8);
    litmus_receive(litmus->more[1], litmus, litmus->y, 8);
    litmus_post(first, litmus, IBV_WR_SEND, litmus->r, NULL, 8, SIGNALLED);
    while (sends < 2 || receives < 2) {
        struct ibv_wc entry = poll_any(CQ);
        MUST(entry.status == IBV_WC_SUCCESS);
        if (entry.opcode != IBV_WC_RECV)
            completed[sends++] = entry.qp_num;
        else if (!receives++)
            litmus_post(second, litmus, IBV_WR_SEND, litmus->r, NULL, 8, SIGNALLED);
    }
    return completed[0] == second->qp_num;
}

/* --- the device */

bool litmus_P18(struct litmus *litmus)
{
    struct rusage before, after;
    struct ibv_pd *pd;
    MUST(!getrusage(RUSAGE_THREAD, &before) && (pd = ibv_alloc_pd(litmus->ends.context)));
    MUST(!getrusage(RUSAGE_THREAD, &after) && !ibv_dealloc_pd(pd));
    return after.ru_nvcsw > before.ru_nvcsw;
}

bool litmus_P19(struct litmus *litmus)
{
    return loopback_first_gid(litmus->ends.context) != 0;
}

static bool is_down(struct ibv_context *context)
{
    struct ibv_port_attr port;
    MUST(!ibv_query_port(context, 1, &port));
    return port.state != IBV_PORT_ACTIVE;
}

void litmus_open_early(struct litmus *litmus)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_async_event event;
    MUST(list && *list && (litmus->early = ibv_open_device(*list)));
    ibv_free_device_list(list);
    litmus->was_down = is_down(litmus->early);
    struct pollfd file = {.fd = litmus->early->async_fd, .events = POLLIN};
    litmus->stays_down = litmus->was_down && poll(&file, 1, PATIENCE) <= 0;
    if (!litmus->was_down || litmus->stays_down)
        return;
    MUST(!ibv_get_async_event(litmus->early, &event) && event.event_type == IBV_EVENT_PORT_ACTIVE);
    ibv_ack_async_event(&event);
    litmus->stays_down = is_down(litmus->early);
}

bool litmus_P20(struct litmus *litmus)
{
    return litmus->was_down;
}

bool litmus_P21(struct litmus *litmus)
{
    return litmus->stays_down;
}

/* A test that takes days hangs. */
bool litmus_P22(struct litmus *litmus)
{
    struct ibv_mr *mr = ibv_reg_mr(litmus->ends.pd, NULL, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
    return !mr || ibv_dereg_mr(mr);
}

/* --- datagrams */

enum { DATAGRAMS = 64, DATAGRAM_ROOM = 64, QUIET_POLLS = 1000, DATAGRAM_QKEY = 0x11111111 };

struct datagrams {
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_ah *ah;
    bool seen[DATAGRAMS], twice, wrong, late;
    unsigned sent, arrived, last;
};

static void datagrams_open(struct datagrams *to, const struct litmus *litmus)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = DATAGRAM_QKEY};
    struct ibv_ah_attr way = {.is_global = 1, .port_num = 1};
    *to = (struct datagrams){.cq = ibv_create_cq(litmus->ends.context, 2 * DATAGRAMS, NULL, NULL, 0)};
    MUST(to->cq);
    struct ibv_qp_init_attr init = {.send_cq = to->cq,
                                    .recv_cq = to->cq,
                                    .cap = {DATAGRAMS, DATAGRAMS, 1, 1},
                                    .qp_type = IBV_QPT_UD,
                                    .sq_sig_all = 1};
    MUST(to->qp = ibv_create_qp(litmus->ends.pd, &init));
    MUST(!ibv_modify_qp(to->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
    attr.qp_state = IBV_QPS_RTR;
    MUST(!ibv_modify_qp(to->qp, &attr, IBV_QP_STATE));
    attr.qp_state = IBV_QPS_RTS;
    MUST(!ibv_modify_qp(to->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
    int first = loopback_first_gid(litmus->ends.context);
    way.grh.sgid_index = (uint8_t)first;
    MUST(!ibv_query_gid(litmus->ends.context, 1, first, &way.grh.dgid));
    MUST(to->ah = ibv_create_ah(litmus->ends.pd, &way));
}

static void datagrams_close(const struct datagrams *datagrams)
{
    MUST(!ibv_destroy_ah(datagrams->ah) && !ibv_destroy_qp(datagrams->qp) && !ibv_destroy_cq(datagrams->cq));
}

static void datagrams_post(const struct datagrams *datagrams, struct litmus *litmus, unsigned number)
{
    uint64_t lkey = litmus->ends.mr->lkey;
    volatile uint64_t *from = litmus->wide_source + number;
    struct ibv_sge to = {(uintptr_t)litmus->wide + (uint64_t)number * DATAGRAM_ROOM, DATAGRAM_ROOM, (uint32_t)lkey},
                   piece = {(uintptr_t)from, 8, (uint32_t)lkey};
    struct ibv_recv_wr *bad_receive, receive = {.wr_id = DATAGRAMS + number, .sg_list = &to, .num_sge = 1};
    struct ibv_send_wr *bad, send = {.sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_SEND};
    *from = number;
    send.wr.ud.ah = datagrams->ah;
    send.wr.ud.remote_qpn = datagrams->qp->qp_num;
    send.wr.ud.remote_qkey = DATAGRAM_QKEY;
    MUST(!ibv_post_recv(datagrams->qp, &receive, &bad_receive) && !ibv_post_send(datagrams->qp, &send, &bad));
}

static void datagrams_take(struct datagrams *datagrams, struct litmus *litmus, const struct ibv_wc *entry)
{
    enum { HEADER = 40 };
    MUST(entry->status == IBV_WC_SUCCESS);
    if (entry->opcode != IBV_WC_RECV) {
        datagrams->sent++;
        return;
    }
    const char *at = (char *)(uintptr_t)litmus->wide + (entry->wr_id - DATAGRAMS) * DATAGRAM_ROOM;
    uint64_t number;
    memcpy(&number, at + HEADER, sizeof number);
    datagrams->wrong |= number >= DATAGRAMS || entry->byte_len != HEADER + sizeof number;
    if (datagrams->wrong)
        return;
    datagrams->twice |= datagrams->seen[number];
    datagrams->seen[number] = true;
    datagrams->late |= number < datagrams->last;
    datagrams->last = (unsigned)number;
    datagrams->arrived++;
}

/* Polls until all have arrived, or QUIET_POLLS polls found nothing; each poll moves what is there. */
static struct datagrams send_datagrams(struct litmus *litmus)
{
    struct datagrams datagrams;
    datagrams_open(&datagrams, litmus);
    for (unsigned i = 0; i < DATAGRAMS; i++)
        datagrams_post(&datagrams, litmus, i);
    for (unsigned quiet = 0; (datagrams.arrived < DATAGRAMS && quiet < QUIET_POLLS) || datagrams.sent < DATAGRAMS;
         quiet++) {
        struct ibv_wc entry;
        if (ibv_poll_cq(datagrams.cq, 1, &entry)) {
            datagrams_take(&datagrams, litmus, &entry);
            quiet = 0;
        } else
            sched_yield();
    }
    datagrams_close(&datagrams);
    return datagrams;
}

bool litmus_P13(struct litmus *litmus)
{
    struct datagrams datagrams = send_datagrams(litmus);
    return datagrams.arrived < DATAGRAMS || datagrams.late;
}

bool litmus_P14(struct litmus *litmus)
{
    struct datagrams datagrams = send_datagrams(litmus);
    return datagrams.twice || datagrams.wrong;
}
