#include "raw.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

const uint8_t mac[6] = {2, 0, 0, 0, 0, 0x11}, other_mac[6] = {2, 0, 0, 0, 0, 0x12},
              group_mac[6] = {1, 0, 0x5e, 0, 0, 1};

void raw_fill_frame(uint8_t *frame, const uint8_t *to, uint32_t length)
{
    for (uint32_t i = 0; i < length; i++)
        frame[i] = (uint8_t)(i * 3 + 1);
    memcpy(frame, to, 6);
    memcpy(frame + 6, other_mac, 6);
    frame[12] = TYPE >> 8;
    frame[13] = TYPE & 0xff;
}
/* UDP over IPv4 from this address: what hashes spread. The checksums are 0. */
void raw_fill_udp(uint8_t *frame, uint32_t source)
{
    static const uint8_t headers[] = {0x08, 0x00, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0};
    raw_fill_frame(frame, mac, UDP_FRAME);
    memcpy(frame + 12, headers, sizeof headers);
    memcpy(frame + 26, &source, 4);
    memset(frame + 36, 0, 6);
    frame[39] = 26;
}
static void set_up(struct end *end)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    EXPECT(remote_modify_qp(end->remote, end->qp, &attr, IBV_QP_STATE | IBV_QP_PORT), ==, 0);
    attr.qp_state = IBV_QPS_RTR;
    EXPECT(remote_modify_qp(end->remote, end->qp, &attr, IBV_QP_STATE), ==, 0);
    attr.qp_state = IBV_QPS_RTS;
    EXPECT(remote_modify_qp(end->remote, end->qp, &attr, IBV_QP_STATE), ==, 0);
}
struct pair raw_open_pair(void)
{
    struct pair pair = pair_make(pair_wishes(IBV_QPT_RAW_PACKET));
    set_up(&pair.far);
    set_up(&pair.near);
    return pair;
}
void raw_far_sends(struct pair *pair, const uint8_t *frame, uint32_t length, unsigned flags)
{
    for (uint32_t at = 0; at < length; at += 8) {
        uint64_t word = 0;
        memcpy(&word, frame + at, length - at < 8 ? length - at : 8);
        remote_poke(pair->far.remote, pair->far.memory + at, word);
    }
    struct send send = {
        .wr = {.wr_id = 5, .opcode = IBV_WR_SEND, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED | flags}, .ah = NOBODY};
    send.sge[0] = end_sge(&pair->far, 0, length);
    end_post(&pair->far, send);
    end_expect_sent(&pair->far, 5, IBV_WC_SUCCESS);
}
void raw_far_sends_to(struct pair *pair, const uint8_t *to)
{
    uint8_t frame[FRAME];
    raw_fill_frame(frame, to, FRAME);
    raw_far_sends(pair, frame, FRAME, 0);
}
struct receiver *raw_make_receiver(const struct pair *pair, uint32_t create_flags, uint32_t receives)
{
    struct receiver *receiver = calloc(1, sizeof *receiver);
    struct ibv_pd *pd = near_pd(pair);
    struct ibv_cq_init_attr_ex cq = {.cqe = 64, .wc_flags = FLAGS};
    receiver->cq = ibv_create_cq_ex(pd->context, &cq);
    EXPECT_TRUE(receiver->cq);
    struct ibv_qp_init_attr_ex attr = {
        .send_cq = ibv_cq_ex_to_cq(receiver->cq),
        .recv_cq = ibv_cq_ex_to_cq(receiver->cq),
        .cap = {.max_send_wr = 8, .max_send_sge = 1, .max_recv_wr = RECEIVES, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RAW_PACKET,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_MAX_TSO_HEADER,
        .pd = pd,
        .create_flags = create_flags,
        .max_tso_header = 64,
    };
    receiver->qp = ibv_create_qp_ex(pd->context, &attr);
    EXPECT_TRUE(receiver->qp);
    receiver->mr = ibv_reg_mr(pd, receiver->memory, sizeof receiver->memory, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_qp_attr state = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    EXPECT(ibv_modify_qp(receiver->qp, &state, IBV_QP_STATE | IBV_QP_PORT), ==, 0);
    for (state.qp_state = IBV_QPS_RTR; state.qp_state <= IBV_QPS_RTS; state.qp_state++)
        EXPECT(ibv_modify_qp(receiver->qp, &state, IBV_QP_STATE), ==, 0);
    for (uint32_t i = 0; i < receives; i++) {
        struct ibv_sge sge = {(uintptr_t)receiver->memory[i], ROOM, receiver->mr->lkey};
        struct ibv_recv_wr *bad, wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1};
        EXPECT(ibv_post_recv(receiver->qp, &wr, &bad), ==, 0);
    }
    return receiver;
}
void raw_destroy_receiver(struct receiver *receiver)
{
    EXPECT(ibv_destroy_qp(receiver->qp), ==, 0);
    EXPECT(ibv_destroy_cq(ibv_cq_ex_to_cq(receiver->cq)), ==, 0);
    EXPECT(ibv_dereg_mr(receiver->mr), ==, 0);
    free(receiver);
}
bool raw_poll_once(struct ibv_cq_ex *cq, struct got *got)
{
    struct ibv_poll_cq_attr attr = {0};
    if (ibv_start_poll(cq, &attr))
        return false;
    *got = (struct got){
        .id = (int64_t)cq->wr_id,
        .length = ibv_wc_read_byte_len(cq),
        .tag = ibv_wc_read_flow_tag(cq),
        .flags = ibv_wc_read_wc_flags(cq),
        .number = ibv_wc_read_qp_num(cq),
        .cvlan = ibv_wc_read_cvlan(cq),
        .status = cq->status,
    };
    ibv_end_poll(cq);
    return true;
}
struct got raw_receive_on(struct ibv_cq_ex *cq)
{
    struct got got = {.id = -1};
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while (!raw_poll_once(cq, &got) && (now.tv_sec - start.tv_sec) * 1000 < PATIENCE);
    EXPECT(got.id, >=, 0);
    EXPECT(got.status, ==, IBV_WC_SUCCESS);
    return got;
}
struct got raw_gets(struct receiver *receiver)
{
    return raw_receive_on(receiver->cq);
}
/* When the witness has got this frame, each frame sent before it has arrived or is lost, since links keep the
 * order. */
void raw_flush_to(struct pair *pair, struct receiver *witness)
{
    static const uint8_t witness_mac[6] = {2, 0, 0, 0, 0, 0x77};
    uint8_t frame[FRAME];
    raw_fill_frame(frame, witness_mac, FRAME - 1);
    raw_far_sends(pair, frame, FRAME - 1, 0);
    EXPECT(raw_gets(witness).length, ==, FRAME - 1);
}
void raw_gets_nothing(struct receiver *receiver)
{
    struct got got;
    EXPECT(raw_poll_once(receiver->cq, &got), ==, 0);
}
struct ibv_flow *raw_try_flow(struct ibv_qp *qp, struct wanted wanted)
{
    char bytes[256], *at = bytes + sizeof(struct ibv_flow_attr);
    struct ibv_flow_attr attr = {
        .type = wanted.type, .priority = wanted.priority, .port = 1, .flags = wanted.flags, .size = sizeof bytes};
    struct ibv_flow_spec_eth eth = {.type = IBV_FLOW_SPEC_ETH, .size = sizeof eth};
    struct ibv_flow_spec_action_tag tag = {IBV_FLOW_SPEC_ACTION_TAG, sizeof tag, wanted.tag};
    struct ibv_flow_spec_counter_action count = {IBV_FLOW_SPEC_ACTION_COUNT, sizeof count, wanted.counters};
    struct ibv_flow_spec_action_drop drop = {IBV_FLOW_SPEC_ACTION_DROP, sizeof drop};
    if (wanted.mac) {
        memcpy(eth.val.dst_mac, wanted.mac, 6);
        memset(eth.mask.dst_mac, 0xff, 6);
        at = mempcpy(at, &eth, sizeof eth), attr.num_of_specs++;
    }
    if (wanted.tag)
        at = mempcpy(at, &tag, sizeof tag), attr.num_of_specs++;
    if (wanted.counters)
        at = mempcpy(at, &count, sizeof count), attr.num_of_specs++;
    if (wanted.drop)
        at = mempcpy(at, &drop, sizeof drop), attr.num_of_specs++;
    memcpy(bytes, &attr, sizeof attr);
    return ibv_create_flow(qp, (struct ibv_flow_attr *)bytes);
}
struct ibv_flow *raw_must(struct ibv_flow *flow)
{
    EXPECT_TRUE(flow);
    return flow;
}
