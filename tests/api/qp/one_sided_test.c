/* READs and WRITEs by the requester itself: they need no processor of the other side. */
#include "local_end.h"

/* These messages give each process the other's ring and what it publishes. */
static struct pair acquainted_as(struct wishes wishes)
{
    struct pair pair = pair_open_as(wishes);
    pair_ping(&pair, &pair.near, &pair.far);
    pair_ping(&pair, &pair.far, &pair.near);
    return pair;
}

static struct pair acquainted(void)
{
    return acquainted_as(pair_wishes(IBV_QPT_RC));
}

static bool is_direct(void)
{
    return harness_link() == LINK_SHM;
}

static void a_stopped_process_is_written_and_read(const void *argument)
{
    static const uint32_t lengths[] = {1, 8, 100, 4096, 32768};
    struct ibv_wc wc;
    struct pair pair = acquainted();
    remote_fill(pair.near.remote, pair.near.memory, 32768, 7);
    remote_stop(harness_far(), true);
    for (uint64_t i = 0; i < COUNT(lengths); i++) {
        end_post(&pair.near, end_send(&pair.near, &pair.far, IBV_WR_RDMA_WRITE, i, 0, lengths[i]));
        if (!is_direct())
            break;
        end_expect_sent(&pair.near, i, IBV_WC_SUCCESS);
    }
    if (!is_direct()) {
        int early = remote_poll(pair.near.remote, pair.near.send_cq, 1, &wc, 200);
        remote_stop(harness_far(), false);
        EXPECT(early, ==, 0);
        end_expect_sent(&pair.near, 0, IBV_WC_SUCCESS);
        return;
    }
    remote_set(pair.near.remote, pair.near.memory, 32768, 0);
    end_post(&pair.near, end_send(&pair.near, &pair.far, IBV_WR_RDMA_READ, 9, 0, 32768));
    end_expect_sent(&pair.near, 9, IBV_WC_SUCCESS);
    EXPECT(remote_compare(pair.near.remote, pair.near.memory, 32768, 7, 0), ==, -1);
    remote_stop(harness_far(), false);
    EXPECT(remote_compare(pair.far.remote, pair.far.memory, 32768, 7, 0), ==, -1);
}

/* A SEND that was posted before has to arrive before, so the WRITE waits although the requester could do it by itself.
 */
static void a_WRITE_behind_a_SEND_waits_for_it(const void *argument)
{
    struct ibv_wc wc;
    struct pair pair = acquainted();
    remote_poke(pair.far.remote, pair.far.memory + 64, 0);
    remote_poke(pair.near.remote, pair.near.memory + 64, 77);
    end_post_receive(&pair.far, end_receive(&pair.far, 5, 0, 64));
    remote_stop(harness_far(), true);
    end_post(&pair.near, end_send(&pair.near, &pair.far, IBV_WR_SEND, 1, 0, 8));
    end_post(&pair.near, end_send(&pair.near, &pair.far, IBV_WR_RDMA_WRITE, 2, 64, 8));
    int early = remote_poll(pair.near.remote, pair.near.send_cq, 1, &wc, 200);
    remote_stop(harness_far(), false);
    EXPECT(early, ==, 0);
    end_expect_sent(&pair.near, 1, IBV_WC_SUCCESS);
    end_expect_sent(&pair.near, 2, IBV_WC_SUCCESS);
    end_expect_received(&pair.far, 5, IBV_WC_SUCCESS, 8);
    EXPECT(remote_peek(pair.far.remote, pair.far.memory + 64), ==, 77);
}

/* The work takes no PSN, so both ends still count alike. */
static void packets_go_on_behind_what_went_without_them(const void *argument)
{
    struct pair pair = acquainted();
    for (uint64_t i = 0; i < 300; i++) {
        enum ibv_wr_opcode opcode = i % 3 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
        end_post(&pair.near, end_send(&pair.near, &pair.far, opcode, i, 0, 64));
        end_expect_sent(&pair.near, i, IBV_WC_SUCCESS);
        end_post(&pair.far, end_send(&pair.far, &pair.near, opcode, i, 0, 64));
        end_expect_sent(&pair.far, i, IBV_WC_SUCCESS);
        if (i % 10 == 0) {
            pair_ping(&pair, &pair.near, &pair.far);
            pair_ping(&pair, &pair.far, &pair.near);
        }
    }
}

/* The requests before the wrong one are done, in their order; no later request is. */
static void a_list_of_WRITEs_is_done_up_to_the_wrong_one(const void *row)
{
    enum { ALL = 40, NONE = ALL };
    uint64_t wrong = (uintptr_t)row;
    struct send list[ALL];
    struct pair pair = acquainted();
    for (uint64_t i = 0; i < ALL; i++) {
        remote_poke(pair.near.remote, pair.near.memory + 8 * i, 1000 + i);
        remote_poke(pair.far.remote, pair.far.memory + 8 * i, 0);
        list[i] = end_send(&pair.near, &pair.far, IBV_WR_RDMA_WRITE, i, 8 * i, 8);
    }
    if (wrong < NONE)
        list[wrong].wr.wr.rdma.rkey ^= 0x100;
    list[1].wr.wr.rdma.remote_addr = pair.far.memory + 8 * 2; /* what the third overwrites */
    if (is_direct())
        remote_stop(harness_far(), wrong == NONE);
    EXPECT(remote_post_send(pair.near.remote, pair.near.qp, list, ALL, NULL), ==, 0);
    for (uint64_t i = 0; i < ALL; i++)
        end_expect_sent(&pair.near, i,
                        i < wrong    ? IBV_WC_SUCCESS
                        : i == wrong ? IBV_WC_REM_ACCESS_ERR
                                     : IBV_WC_WR_FLUSH_ERR);
    if (is_direct())
        remote_stop(harness_far(), false);
    for (uint64_t i = 0; i < ALL; i++)
        EXPECT(remote_peek(pair.far.remote, pair.far.memory + 8 * i), ==, i < wrong && i != 1 ? 1000 + i : 0);
}

/* The other's responder reports errors, whatever was done without it before. */
static void a_refusal_is_the_responders(const void *row)
{
    enum { GONE, SHORT, READ_ONLY, REACCESSED } what = (unsigned)(uintptr_t)row;
    struct pair pair = acquainted();
    struct send send = end_send(&pair.near, &pair.far, IBV_WR_RDMA_WRITE, 2, 0, 8);
    end_post(&pair.near, end_send(&pair.near, &pair.far, IBV_WR_RDMA_WRITE, 1, 0, 8));
    end_expect_sent(&pair.near, 1, IBV_WC_SUCCESS);
    remote_poke(pair.far.remote, pair.far.memory, 5);
    if (what == GONE) {
        EXPECT(remote_destroy(pair.far.remote, KIND_MR, pair.far.mr), ==, 0);
    } else if (what == SHORT) {
        send.wr.wr.rdma.remote_addr = pair.far.memory + pair.far.length - 7;
    } else if (what == READ_ONLY) {
        EXPECT(remote_rereg_mr(pair.far.remote, pair.far.mr, IBV_REREG_MR_CHANGE_ACCESS, 0, 0, 0,
                               IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ),
               ==, 0);
    } else {
        struct ibv_qp_attr attr = {.qp_access_flags = IBV_ACCESS_REMOTE_READ};
        EXPECT(remote_modify_qp(pair.far.remote, pair.far.qp, &attr, IBV_QP_ACCESS_FLAGS), ==, 0);
    }
    end_post(&pair.near, send);
    end_expect_sent(&pair.near, 2, what == REACCESSED ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_REM_ACCESS_ERR);
    EXPECT(remote_peek(pair.far.remote, pair.far.memory), ==, 5);
}

/* The number that the far end got in RTR stays the most that it keeps, whatever number a later ibv_modify_qp gives. */
static void tell_far_to_keep(struct pair *pair, uint8_t reads)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD};
    EXPECT(remote_modify_qp(pair->far.remote, pair->far.qp, &attr, IBV_QP_STATE), ==, 0);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_SQD, .max_dest_rd_atomic = reads};
    EXPECT(remote_modify_qp(pair->far.remote, pair->far.qp, &attr, IBV_QP_STATE | IBV_QP_MAX_DEST_RD_ATOMIC), ==, 0);
    EXPECT(end_move(&pair->far, IBV_QPS_RTS), ==, 0);
}

/* Such READs are refused between hosts, too. The far end is stopped, so that it finds all of them at once. The READ
 * before them is there because on a new connection the first one is sent alone (transport/rc/direct.c). */
static void READs_beyond_max_dest_rd_atomic_are_refused(const void *row)
{
    enum { ALL = 64 };
    bool grows = row;
    struct send list[ALL];
    struct wishes wishes = pair_wishes(IBV_QPT_RC);
    wishes.reads = 16;
    wishes.served_reads = 1;
    struct pair pair = acquainted_as(wishes);
    if (grows)
        tell_far_to_keep(&pair, 16);
    end_post(&pair.near, end_send(&pair.near, &pair.far, IBV_WR_RDMA_READ, ALL, 0, 8));
    end_expect_sent(&pair.near, ALL, IBV_WC_SUCCESS);
    for (uint64_t i = 0; i < ALL; i++)
        list[i] = end_send(&pair.near, &pair.far, IBV_WR_RDMA_READ, i, 0, 8);
    remote_stop(harness_far(), true);
    EXPECT(remote_post_send(pair.near.remote, pair.near.qp, list, ALL, NULL), ==, 0);
    remote_stop(harness_far(), false);
    end_expect_sent(&pair.near, 0, IBV_WC_SUCCESS);
    end_expect_sent(&pair.near, 1, IBV_WC_REM_INV_REQ_ERR);
    for (uint64_t i = 2; i < ALL; i++)
        end_expect_sent(&pair.near, i, IBV_WC_WR_FLUSH_ERR);
}

/* The number of outstanding requests counts, and not the number that might be. */
static void READs_one_by_one_are_within_any_max_dest_rd_atomic(const void *argument)
{
    struct wishes wishes = pair_wishes(IBV_QPT_RC);
    wishes.reads = 16;
    wishes.served_reads = 1;
    struct pair pair = acquainted_as(wishes);
    remote_fill(pair.far.remote, pair.far.memory, 32768, 7);
    for (uint64_t i = 0; i < 100; i++) {
        end_post(&pair.near, end_send(&pair.near, &pair.far, IBV_WR_RDMA_READ, i, 0, 32768));
        end_expect_sent(&pair.near, i, IBV_WC_SUCCESS);
    }
    EXPECT(remote_compare(pair.near.remote, pair.near.memory, 32768, 7, 0), ==, -1);
}

static void all(void)
{
    static const char *const names[] = {"a key that is gone is refused by the responder", "a range that is too long is",
                                        "a region that may only be read is", "a queue pair that may only be read is"};
    CASE(a_stopped_process_is_written_and_read);
    CASE(a_WRITE_behind_a_SEND_waits_for_it);
    CASE(packets_go_on_behind_what_went_without_them);
    harness_run("a list of WRITEs is done in its order", a_list_of_WRITEs_is_done_up_to_the_wrong_one, (void *)40);
    harness_run("a list of WRITEs is done up to the wrong one", a_list_of_WRITEs_is_done_up_to_the_wrong_one,
                (void *)25);
    for (uintptr_t i = 0; i < COUNT(names); i++)
        harness_run(names[i], a_refusal_is_the_responders, (void *)i);
    CASE(READs_beyond_max_dest_rd_atomic_are_refused);
    harness_run("READs beyond the max_dest_rd_atomic of RTR are refused", READs_beyond_max_dest_rd_atomic_are_refused,
                (void *)1);
    CASE(READs_one_by_one_are_within_any_max_dest_rd_atomic);
}

int main(int argc, char **argv)
{
    return harness_main(argc, argv, all);
}
