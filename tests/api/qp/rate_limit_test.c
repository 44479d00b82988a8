/* Queue pairs that send at a limited rate: ibv_modify_qp_rate_limit(3), IBV_QP_RATE_LIMIT of ibv_modify_qp(3). The near
 * end sends. A busy machine may be slower than the rate, so most cases only show that it is never faster. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "local_end.h"

enum { SLOW = 80000, MESSAGE = 4096, MESSAGES = 50, BURST = 16384 }; /* kbps: 10 bytes a microsecond */

static long microseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int limit(const struct pair *pair, uint32_t rate, uint32_t burst, uint16_t packet)
{
    struct ibv_qp_rate_limit_attr attr = {.rate_limit = rate, .max_burst_sz = burst, .typical_pkt_sz = packet};
    return ibv_modify_qp_rate_limit(near_qp(pair), &attr);
}

static enum ibv_wr_opcode some_opcode(enum ibv_qp_type type)
{
    return type == IBV_QPT_UD ? IBV_WR_SEND : IBV_WR_RDMA_WRITE;
}

/* Posts them all at once, waits until they have ended, and says how long that took. */
static long time_to_send(struct pair *pair, int messages, uint32_t length)
{
    enum ibv_qp_type type = pair->wishes.type;
    for (int i = 0; i < messages && type == IBV_QPT_UD; i++)
        end_post_receive(&pair->far, end_receive(&pair->far, 1, 0, length + 40));
    long from = microseconds();
    for (int i = 0; i < messages; i++)
        end_post(&pair->near, end_send(&pair->near, &pair->far, some_opcode(type), 1, 0, length));
    for (int i = 0; i < messages; i++)
        end_expect_sent(&pair->near, 1, IBV_WC_SUCCESS);
    return microseconds() - from;
}

/* A datagram of UC or UD is complete when it has gone, so the last counts nothing. */
static long least(int messages, uint32_t length, uint32_t burst)
{
    return ((long)(messages - 1) * length - (long)burst) / 10;
}

static void nothing_is_sent_faster_than_the_limit(const void *row)
{
    struct pair pair = pair_open(*(const enum ibv_qp_type *)row);
    EXPECT(limit(&pair, SLOW, BURST, 0), ==, 0);
    long took = time_to_send(&pair, MESSAGES, MESSAGE);
    EXPECT(took, >=, least(MESSAGES, MESSAGE, BURST));
    EXPECT(took, <, 200 * least(MESSAGES, MESSAGE, BURST));
}

static void a_long_message_is_spread_over_time(const void *row)
{
    const uint32_t megabyte = 1 << 20;
    struct wishes wishes = pair_wishes(*(const enum ibv_qp_type *)row);
    wishes.length = megabyte;
    struct pair pair = pair_open_as(wishes);
    EXPECT(limit(&pair, SLOW, BURST, 0), ==, 0);
    remote_fill(pair.near.remote, pair.near.memory, megabyte, 7);
    EXPECT(time_to_send(&pair, 1, megabyte), >=, (megabyte - 2 * BURST) / 10);
    end_post_receive(&pair.far, end_receive(&pair.far, 2, 0, 0));
    end_post(&pair.near, end_send(&pair.near, &pair.far, IBV_WR_SEND, 2, 0, 0));
    end_expect_received(&pair.far, 2, IBV_WC_SUCCESS, 0);
    EXPECT(remote_compare(pair.far.remote, pair.far.memory, megabyte, 7, 0), ==, -1);
}

static void a_burst_goes_at_once(const void *row)
{
    const uint32_t burst = MESSAGES * (MESSAGE + 200);
    long took = burst;
    struct pair pair = pair_open(IBV_QPT_RC);
    EXPECT(limit(&pair, SLOW, burst, 0), ==, 0);
    for (int i = 0; i < 20 && took >= (long)burst / 10; i++) {
        long from = microseconds();
        while (microseconds() - from < (long)burst / 10) /* the burst has filled up again */
            ;
        took = time_to_send(&pair, MESSAGES, MESSAGE);
    }
    EXPECT(took, <, burst / 10);
}

static void a_limit_can_be_lifted_while_work_waits(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    EXPECT(limit(&pair, 1, 0, 0), ==, 0); /* 8 ms a byte: the second message would wait for half a minute */
    for (int i = 0; i < 8; i++)
        end_post(&pair.near, end_send(&pair.near, &pair.far, IBV_WR_RDMA_WRITE, 1, 0, MESSAGE));
    end_expect_sent(&pair.near, 1, IBV_WC_SUCCESS);
    end_expect_nothing(&pair.near);
    EXPECT(limit(&pair, 0, 0, 0), ==, 0);
    for (int i = 0; i < 7; i++)
        end_expect_sent(&pair.near, 1, IBV_WC_SUCCESS);
    pair_ping(&pair, &pair.near, &pair.far);
}

/* A reliable queue pair acknowledges and answers READs at once, whatever waits in its own send queue. */
static void answers_are_not_held_up(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    EXPECT(limit(&pair, 1, 0, 0), ==, 0);
    for (int i = 0; i < 4; i++)
        end_post(&pair.near, end_send(&pair.near, &pair.far, IBV_WR_RDMA_WRITE, 1, 0, MESSAGE));
    remote_fill(pair.near.remote, pair.near.memory, MESSAGE, 5);
    end_post(&pair.far, end_send(&pair.far, &pair.near, IBV_WR_RDMA_READ, 2, 0, MESSAGE));
    end_expect_sent(&pair.far, 2, IBV_WC_SUCCESS);
    EXPECT(remote_compare(pair.far.remote, pair.far.memory, MESSAGE, 5, 0), ==, -1);
    end_expect_sent(&pair.near, 1, IBV_WC_SUCCESS); /* its acknowledgement may arrive after the READ */
    EXPECT(end_move(&pair.near, IBV_QPS_ERR), ==, 0);
    for (int i = 0; i < 3; i++)
        end_expect_sent(&pair.near, 1, IBV_WC_WR_FLUSH_ERR);
}

static void RESET_ends_the_limit(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    EXPECT(limit(&pair, 1, 0, 0), ==, 0);
    EXPECT(ibv_query_qp(near_qp(&pair), &attr, IBV_QP_RATE_LIMIT, &init), ==, 0);
    EXPECT(attr.rate_limit, ==, 1);
    end_post(&pair.near, end_send(&pair.near, &pair.far, IBV_WR_RDMA_WRITE, 1, 0, MESSAGE));
    end_post(&pair.near, end_send(&pair.near, &pair.far, IBV_WR_RDMA_WRITE, 1, 0, MESSAGE));
    end_expect_sent(&pair.near, 1, IBV_WC_SUCCESS); /* nothing of it is on its way any more */
    EXPECT(end_move(&pair.near, IBV_QPS_RESET), ==, 0);
    EXPECT(end_move(&pair.far, IBV_QPS_RESET), ==, 0);
    pair_connect(&pair);
    EXPECT(ibv_query_qp(near_qp(&pair), &attr, IBV_QP_RATE_LIMIT, &init), ==, 0);
    EXPECT(attr.rate_limit, ==, 0);
    for (int i = 0; i < 4; i++)
        pair_ping(&pair, &pair.near, &pair.far);
}

static void bad_limits_are_refused(const void *row)
{
    struct pair pair = pair_make(pair_wishes(IBV_QPT_RC));
    struct ibv_qp_rate_limit_attr attr = {.rate_limit = 1000, .comp_mask = 1};
    EXPECT(limit(&pair, SLOW, 0, 0), ==, EINVAL); /* in RESET */
    pair_connect(&pair);
    EXPECT(ibv_modify_qp_rate_limit(near_qp(&pair), &attr), ==, EINVAL);
    EXPECT(limit(&pair, 0, BURST, 0), ==, EINVAL);
    EXPECT(limit(&pair, 0, 0, 1000), ==, EINVAL);
    near_qp(&pair)->handle ^= 1;
    EXPECT(limit(&pair, SLOW, 0, 0), ==, ENOENT);
    near_qp(&pair)->handle ^= 1;
    EXPECT(limit(&pair, SLOW, 0, 0), ==, 0);
}

static void the_device_tells_what_it_paces(const void *row)
{
    struct pair pair = pair_make(pair_wishes(IBV_QPT_RC));
    struct ibv_device_attr_ex device;
    EXPECT(ibv_query_device_ex(near_qp(&pair)->context, NULL, &device), ==, 0);
    EXPECT(device.packet_pacing_caps.qp_rate_limit_min, ==, 1);
    EXPECT(device.packet_pacing_caps.qp_rate_limit_max, ==, UINT32_MAX);
    EXPECT_TRUE(device.packet_pacing_caps.supported_qpts & 1u << IBV_QPT_RAW_PACKET);
    EXPECT_TRUE(!(device.packet_pacing_caps.supported_qpts & 1u << IBV_QPT_XRC_RECV));
}

static struct ibv_qp *make_raw(struct ibv_pd *pd, struct ibv_cq *cq, uint32_t rate)
{
    struct ibv_qp_init_attr init = {
        .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RAW_PACKET, .cap = {.max_send_wr = 64, .max_send_sge = 1}};
    struct ibv_qp *qp = ibv_create_qp(pd, &init);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    EXPECT_TRUE(qp);
    EXPECT(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT), ==, 0);
    attr.qp_state = IBV_QPS_RTR;
    EXPECT(ibv_modify_qp(qp, &attr, IBV_QP_STATE), ==, 0);
    attr.qp_state = IBV_QPS_RTS, attr.rate_limit = rate;
    EXPECT(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_RATE_LIMIT), ==, 0);
    return qp;
}

/* Frames of 1500 bytes at 12 Mbit/s are one a millisecond; the default burst is two more. */
static void raw_packets_are_paced(const void *row)
{
    enum { FRAMES = 40, FRAME = 1500, RATE = 12000 };
    struct pair pair = pair_open(IBV_QPT_RC);
    struct ibv_pd *pd = near_pd(&pair);
    struct ibv_cq *cq = ibv_create_cq(pd->context, 64, NULL, NULL, 0);
    struct ibv_qp *qp = make_raw(pd, cq, RATE);
    struct ibv_sge sge = {pair.near.memory, FRAME, pair.near.lkey};
    struct ibv_send_wr *bad, wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
    struct ibv_wc wc;
    wr.send_flags = IBV_SEND_SIGNALED;
    long from = microseconds();
    for (int i = 0; i < FRAMES; i++)
        EXPECT(ibv_post_send(qp, &wr, &bad), ==, 0);
    for (int i = 0; i < FRAMES; i += ibv_poll_cq(cq, 1, &wc))
        ;
    EXPECT(microseconds() - from, >=, (FRAMES - 4) * 1000);
    EXPECT(ibv_destroy_qp(qp), ==, 0);
    EXPECT(ibv_destroy_cq(cq), ==, 0);
}

static void all(void)
{
    static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
    harness_run("RC: nothing is sent faster than the limit", nothing_is_sent_faster_than_the_limit, &types[0]);
    harness_run("UC: nothing is sent faster than the limit", nothing_is_sent_faster_than_the_limit, &types[1]);
    harness_run("UD: nothing is sent faster than the limit", nothing_is_sent_faster_than_the_limit, &types[2]);
    harness_run("RC: a long message is spread over time", a_long_message_is_spread_over_time, &types[0]);
    harness_run("UC: a long message is spread over time", a_long_message_is_spread_over_time, &types[1]);
    CASE(raw_packets_are_paced);
    CASE(a_burst_goes_at_once);
    CASE(a_limit_can_be_lifted_while_work_waits);
    CASE(answers_are_not_held_up);
    CASE(RESET_ends_the_limit);
    CASE(bad_limits_are_refused);
    CASE(the_device_tells_what_it_paces);
}

int main(int argc, char **argv)
{
    return harness_main(argc, argv, all);
}
