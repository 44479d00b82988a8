#include "pair.h"

#include <string.h>

enum { PORT = 1, PING_SPACE = 4096, PING_LENGTH = 64, PING_ID = 0x70696e67 };

/* Frames that a faulty link holds back or loses are sent by threads of the other end, which on a busy machine may take
 * longer than all retries of 4 ms, and longer still in a sanitized program. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { SLOW_TIMEOUT = 14, LOSSY_TIMEOUT = 12 };
#else
enum { SLOW_TIMEOUT = 12, LOSSY_TIMEOUT = 12 };
#endif

static uint8_t ack_timeout(void)
{
    enum link_kind link = harness_link();
    return link == LINK_SLOW ? SLOW_TIMEOUT : link == LINK_LOSSY ? LOSSY_TIMEOUT : 10;
}

struct wishes pair_wishes(enum ibv_qp_type type)
{
    return (struct wishes){
        .type = type,
        .cap = {.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 4, .max_recv_sge = 4, .max_inline_data = 64},
        .cqe = 256,
        .length = 64 << 10,
        .access = ACCESS_ALL,
        .qp_access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
        .timeout = ack_timeout(),
        .retries = harness_link() >= LINK_LOSSY ? 7 : 2,
        .rnr_retries = 7,
        .rnr_timer = 1,
        .reads = 4,
        .served_reads = 4,
        .qkey = QKEY,
        .gid_index = 1,
    };
}

static int create_cq(struct end *end, const struct wishes *wishes)
{
    struct ibv_cq_init_attr_ex attr = {.cqe = (uint32_t)wishes->cqe, .wc_flags = wishes->cq_flags};
    int cq = wishes->cq_flags ? remote_create_cq_ex(end->remote, &attr, end->channel)
                              : remote_create_cq(end->remote, wishes->cqe, end->channel, 0);
    EXPECT(cq, !=, NOBODY);
    end->cqe = (int)end->remote->call.number[0];
    return cq;
}

void end_create_qp(struct end *end, const struct wishes *wishes)
{
    struct ibv_qp_init_attr attr = {.qp_type = wishes->type, .cap = wishes->cap, .sq_sig_all = wishes->signal_all};
    end->qp = remote_create_qp(end->remote, end->pd, end->send_cq, end->receive_cq, end->srq, &attr);
    if (end->qp == NOBODY)
        harness_fail(__FILE__, __LINE__, "ibv_create_qp: %s", strerror(end->remote->error));
    end->number = (uint32_t)end->remote->call.number[0];
    end->cap = attr.cap;
}

static struct end make_end(struct remote_end *remote, const struct wishes *wishes, bool srq)
{
    struct end end = {.remote = remote, .channel = NOBODY, .srq = NOBODY, .ah = NOBODY, .length = wishes->length};
    if (remote_open(remote, wishes->gid_index))
        harness_fail(__FILE__, __LINE__, "ibv_open_device: %s", strerror(remote->error));
    end.gid = remote->call.about.gid;
    end.pd = remote_alloc_pd(remote);
    EXPECT(end.pd, !=, NOBODY);
    if (wishes->channel)
        end.channel = remote_create_channel(remote);
    end.send_cq = create_cq(&end, wishes);
    end.receive_cq = wishes->one_cq ? end.send_cq : create_cq(&end, wishes);
    if (srq) {
        struct ibv_srq_attr attr = {.max_wr = wishes->cap.max_recv_wr, .max_sge = wishes->cap.max_recv_sge};
        end.srq = remote_create_srq(remote, end.pd, &attr);
        EXPECT(end.srq, !=, NOBODY);
    }
    end.memory = remote_memory(remote, wishes->length);
    end.mr = remote_reg_mr(remote, end.pd, end.memory, end.length, wishes->access);
    EXPECT(end.mr, !=, NOBODY);
    end.lkey = remote->call.about.lkey;
    end.rkey = remote->call.about.rkey;
    end_create_qp(&end, wishes);
    return end;
}

struct pair pair_make(struct wishes wishes)
{
    struct pair pair = {.wishes = wishes};
    pair.near = make_end(harness_near(), &wishes, false);
    pair.far = make_end(harness_far(), &wishes, wishes.srq);
    return pair;
}

int end_initialize(struct end *end, const struct wishes *wishes)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = PORT, .qp_access_flags = wishes->qp_access, .qkey = wishes->qkey};
    return remote_modify_qp(end->remote, end->qp, &attr,
                            IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX |
                                (wishes->type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

static struct ibv_ah_attr address_of(const struct end *peer, const struct wishes *wishes)
{
    return (struct ibv_ah_attr){
        .is_global = 1,
        .port_num = PORT,
        .grh = {.dgid = peer->gid, .sgid_index = (uint8_t)wishes->gid_index, .hop_limit = 64},
    };
}

int end_ready_to_receive(struct end *end, const struct wishes *wishes, const struct end *peer)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = peer->number,
        .rq_psn = 0x123456,
        .ah_attr = address_of(peer, wishes),
        .max_dest_rd_atomic = wishes->served_reads,
        .min_rnr_timer = wishes->rnr_timer,
    };
    int mask = IBV_QP_STATE;
    if (wishes->type != IBV_QPT_UD)
        mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    if (wishes->type == IBV_QPT_RC)
        mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    return remote_modify_qp(end->remote, end->qp, &attr, mask);
}

int end_ready_to_send(struct end *end, const struct wishes *wishes)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTS,
        .sq_psn = 0x123456,
        .timeout = wishes->timeout,
        .retry_cnt = wishes->retries,
        .rnr_retry = wishes->rnr_retries,
        .max_rd_atomic = wishes->reads,
    };
    int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (wishes->type == IBV_QPT_RC)
        mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    return remote_modify_qp(end->remote, end->qp, &attr, mask);
}

int end_move(struct end *end, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = {.qp_state = state};
    return remote_modify_qp(end->remote, end->qp, &attr, IBV_QP_STATE);
}

enum ibv_qp_state end_state(struct end *end)
{
    return remote_qp_state(end->remote, end->qp);
}

static void connect_end(struct end *end, const struct wishes *wishes, const struct end *peer)
{
    EXPECT(end_initialize(end, wishes), ==, 0);
    EXPECT(end_ready_to_receive(end, wishes, peer), ==, 0);
    if (wishes->type != IBV_QPT_UD || end->ah != NOBODY)
        return;
    struct ibv_ah_attr attr = address_of(peer, wishes);
    end->ah = remote_create_ah(end->remote, end->pd, &attr);
    EXPECT(end->ah, !=, NOBODY);
}

/* Both ends can receive before one can send, as in programs that say hello before they continue. */
void pair_connect(struct pair *pair)
{
    connect_end(&pair->near, &pair->wishes, &pair->far);
    connect_end(&pair->far, &pair->wishes, &pair->near);
    EXPECT(end_ready_to_send(&pair->near, &pair->wishes), ==, 0);
    EXPECT(end_ready_to_send(&pair->far, &pair->wishes), ==, 0);
}

struct pair pair_open_as(struct wishes wishes)
{
    struct pair pair = pair_make(wishes);
    pair_connect(&pair);
    return pair;
}

struct pair pair_open(enum ibv_qp_type type)
{
    return pair_open_as(pair_wishes(type));
}

struct ibv_sge end_sge(const struct end *end, uint64_t offset, uint32_t length)
{
    return (struct ibv_sge){.addr = end->memory + offset, .length = length, .lkey = end->lkey};
}

struct send end_send(const struct end *end, const struct end *peer, enum ibv_wr_opcode opcode, uint64_t id,
                     uint64_t offset, uint32_t length)
{
    struct send send = {.ah = end->ah};
    send.wr.wr_id = id;
    send.wr.opcode = opcode;
    send.wr.send_flags = IBV_SEND_SIGNALED;
    send.wr.num_sge = 1;
    send.sge[0] = end_sge(end, offset, length);
    if (end->ah != NOBODY) {
        send.wr.wr.ud.remote_qpn = peer->number;
        send.wr.wr.ud.remote_qkey = QKEY;
    } else if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        send.wr.wr.atomic.remote_addr = peer->memory + offset;
        send.wr.wr.atomic.rkey = peer->rkey;
    } else {
        send.wr.wr.rdma.remote_addr = peer->memory + offset;
        send.wr.wr.rdma.rkey = peer->rkey;
    }
    return send;
}

struct receive end_receive(const struct end *end, uint64_t id, uint64_t offset, uint32_t length)
{
    struct receive receive = {.wr = {.wr_id = id, .num_sge = 1}};
    receive.sge[0] = end_sge(end, offset, length);
    return receive;
}

void end_post(struct end *end, struct send send)
{
    EXPECT(remote_post_send(end->remote, end->qp, &send, 1, NULL), ==, 0);
}

void end_post_receive(struct end *end, struct receive receive)
{
    EXPECT(end->srq == NOBODY ? remote_post_receive(end->remote, end->qp, &receive, 1, NULL)
                              : remote_post_srq(end->remote, end->srq, &receive, 1, NULL),
           ==, 0);
}

struct ibv_wc end_sent(struct end *end)
{
    struct ibv_wc wc = {0};
    if (remote_poll(end->remote, end->send_cq, 1, &wc, PATIENCE) != 1)
        harness_fail(__FILE__, __LINE__, "a send did not complete");
    return wc;
}

struct ibv_wc end_received(struct end *end)
{
    struct ibv_wc wc = {0};
    if (remote_poll(end->remote, end->receive_cq, 1, &wc, PATIENCE) != 1)
        harness_fail(__FILE__, __LINE__, "a receive did not complete");
    return wc;
}

void end_expect_sent(struct end *end, uint64_t id, enum ibv_wc_status status)
{
    struct ibv_wc wc = end_sent(end);
    EXPECT(wc.status, ==, status);
    EXPECT(wc.wr_id, ==, id);
    EXPECT(wc.qp_num, ==, end->number);
}

void end_expect_received(struct end *end, uint64_t id, enum ibv_wc_status status, uint32_t length)
{
    struct ibv_wc wc = end_received(end);
    EXPECT(wc.status, ==, status);
    EXPECT(wc.wr_id, ==, id);
    EXPECT(wc.qp_num, ==, end->number);
    if (status == IBV_WC_SUCCESS)
        EXPECT(wc.byte_len, ==, length);
}

void end_expect_nothing(struct end *end)
{
    struct ibv_wc wc = {0};
    EXPECT(remote_poll(end->remote, end->send_cq, 1, &wc, 0), ==, 0);
    EXPECT(remote_poll(end->remote, end->receive_cq, 1, &wc, 0), ==, 0);
}

void pair_ping(struct pair *pair, struct end *from, struct end *to)
{
    uint32_t extra = pair->wishes.type == IBV_QPT_UD ? 40 : 0;
    static uint64_t seed = 1;
    uint64_t at = from->length - PING_SPACE;
    remote_fill(from->remote, from->memory + at, PING_LENGTH, ++seed);
    end_post_receive(to, end_receive(to, PING_ID, at + 1024, PING_LENGTH + extra));
    end_post(from, end_send(from, to, IBV_WR_SEND, PING_ID, at, PING_LENGTH));
    end_expect_sent(from, PING_ID, IBV_WC_SUCCESS);
    end_expect_received(to, PING_ID, IBV_WC_SUCCESS, PING_LENGTH + extra);
    EXPECT(remote_compare(to->remote, to->memory + at + 1024 + extra, PING_LENGTH, seed, 0), ==, -1);
}
