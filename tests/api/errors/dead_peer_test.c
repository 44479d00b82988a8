/* The far process is killed or stopped: the near one sees errors in time, never hangs, and serves other peers. */
#include "pair.h"

static struct wishes quick(void)
{
    struct wishes wishes = pair_wishes(IBV_QPT_RC);
    wishes.timeout = 12; /* 17 ms */
    wishes.length = 4 << 20;
    return wishes;
}

static void kill_far(void)
{
    remote_kill(harness_far());
    harness_far_is_dead();
}

static void requests_to_a_killed_peer_end_with_RETRY_EXC(const void *argument)
{
    enum ibv_wr_opcode opcode = *(const enum ibv_wr_opcode *)argument;
    struct pair pair = pair_open_as(quick());
    kill_far();
    end_post_receive(&pair.near, end_receive(&pair.near, 9, 0, 64));
    end_post(&pair.near, end_send(&pair.near, &pair.far, opcode, 1, 0, 8));
    end_post(&pair.near, end_send(&pair.near, &pair.far, opcode, 2, 0, 8));
    end_expect_sent(&pair.near, 1, IBV_WC_RETRY_EXC_ERR);
    end_expect_sent(&pair.near, 2, IBV_WC_WR_FLUSH_ERR);
    end_expect_received(&pair.near, 9, IBV_WC_WR_FLUSH_ERR, 0);
}

/* Every one of them ends, whatever the peer had taken of it. */
static void what_is_in_flight_when_the_peer_dies_ends(const void *row)
{
    struct pair pair = pair_open_as(quick());
    bool failed = false;
    for (uint64_t id = 0; id < 32; id++)
        end_post(&pair.near, end_send(&pair.near, &pair.far, IBV_WR_RDMA_WRITE, id, 0, 4 << 20));
    kill_far();
    for (uint64_t id = 0; id < 32; id++) {
        struct ibv_wc wc = end_sent(&pair.near);
        EXPECT(wc.wr_id, ==, id);
        EXPECT_TRUE(!failed || wc.status == IBV_WC_WR_FLUSH_ERR);
        EXPECT_TRUE(failed || wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_RETRY_EXC_ERR);
        failed = wc.status != IBV_WC_SUCCESS;
    }
    EXPECT_TRUE(failed);
}

static void who_lost_a_peer_talks_to_the_next(const void *row)
{
    struct pair pair = pair_open_as(quick());
    pair_ping(&pair, &pair.near, &pair.far);
}

/* Longer than all retries together: a stopped process is slow, not gone. */
static void a_peer_that_stood_still_is_still_there(const void *row)
{
    struct pair pair = pair_open_as(quick());
    struct ibv_wc wc;
    remote_stop(harness_far(), true);
    end_post(&pair.near, end_send(&pair.near, &pair.far, IBV_WR_RDMA_WRITE, 1, 0, 64));
    int early = remote_poll(pair.near.remote, pair.near.send_cq, 1, &wc, 300);
    remote_stop(harness_far(), false);
    if (early)
        harness_fail(__FILE__, __LINE__, "completed meanwhile with status %d", wc.status);
    end_expect_sent(&pair.near, 1, IBV_WC_SUCCESS);
}

/* Twice what its ring takes, in one list. Nothing but room lets the rest continue, as no timer runs. */
static void a_list_that_a_peer_has_no_room_for_arrives(const void *row)
{
    enum { MESSAGES = 64, LENGTH = 8192 };
    struct wishes wishes = quick();
    wishes.timeout = 0;
    struct pair pair = pair_open_as(wishes);
    struct send list[MESSAGES];
    pair_ping(&pair, &pair.near, &pair.far); /* so that the ring is there */
    for (uint64_t i = 0; i < MESSAGES; i++) {
        list[i] = end_send(&pair.near, &pair.far, IBV_WR_SEND, i, 0, LENGTH);
        end_post_receive(&pair.far, end_receive(&pair.far, i, 0, LENGTH));
    }
    remote_stop(harness_far(), true);
    int error = remote_post_send(pair.near.remote, pair.near.qp, list, MESSAGES, NULL);
    remote_stop(harness_far(), false);
    EXPECT(error, ==, 0);
    for (uint64_t i = 0; i < MESSAGES; i++)
        end_expect_sent(&pair.near, i, IBV_WC_SUCCESS);
    for (uint64_t i = 0; i < MESSAGES; i++)
        end_expect_received(&pair.far, i, IBV_WC_SUCCESS, LENGTH);
}

static void all(void)
{
    static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
                                                 IBV_WR_ATOMIC_FETCH_AND_ADD};
    static const char *const names[] = {"a SEND to a killed peer ends with RETRY EXC", "a WRITE does", "a READ does",
                                        "an atomic does"};
    for (size_t i = 0; i < COUNT(opcodes); i++)
        harness_run(names[i], requests_to_a_killed_peer_end_with_RETRY_EXC, &opcodes[i]);
    CASE(what_is_in_flight_when_the_peer_dies_ends);
    CASE(who_lost_a_peer_talks_to_the_next);
    CASE(a_peer_that_stood_still_is_still_there);
    CASE(a_list_that_a_peer_has_no_room_for_arrives);
}

int main(int argc, char **argv)
{
    return harness_main(argc, argv, all);
}
