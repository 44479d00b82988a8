/* Queues in memory, mlx5dv_init_obj(3): a program writes work requests and reads completions without a call, between
 * two queue pairs of this process. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ends.h"
#include "one_process.h"

static void each_operation_is_done(const void *row)
{
    uint64_t *words = (void *)(ends.memory), *there = (void *)(ends.memory + FAR);
    ends_open_connection();
    words = (void *)ends.memory, there = (void *)(ends.memory + FAR);
    memcpy(ends.memory, "to be written", 13);
    driver_begin(&ends.near, WRITE, SIGNALLED, 0);
    driver_remote(&ends.near, ends_far_memory() + 64, ends.mr->rkey);
    driver_pointer(&ends.near, ends.memory, 8, ends.mr->lkey);
    driver_pointer(&ends.near, ends.memory + 8, 5, ends.mr->lkey);
    uint16_t index = driver_end(&ends.near);
    driver_ring(&ends.near);
    struct entry entry = ends_expect_entry(&ends.sent, ENTRY_REQUEST, index);
    EXPECT(entry.number, ==, ends.near.qp->qp_num);
    EXPECT(entry.operation, ==, WRITE);
    EXPECT(memcmp(ends.memory + FAR + 64, "to be written", 13), ==, 0);

    driver_begin(&ends.near, READ, SIGNALLED | FENCED, 0);
    driver_remote(&ends.near, ends_far_memory() + 64, ends.mr->rkey);
    driver_pointer(&ends.near, ends.memory + 128, 13, ends.mr->lkey);
    index = driver_end(&ends.near);
    driver_ring(&ends.near);
    EXPECT(ends_expect_entry(&ends.sent, ENTRY_REQUEST, index).length, ==, 13);
    EXPECT(memcmp(ends.memory + 128, "to be written", 13), ==, 0);

    *there = 40;
    driver_begin(&ends.near, ADD, SIGNALLED, 0);
    driver_remote(&ends.near, ends_far_memory(), ends.mr->rkey);
    driver_operands(&ends.near, 2, 0);
    driver_pointer(&ends.near, words, 8, ends.mr->lkey);
    driver_end(&ends.near);
    driver_begin(&ends.near, SWAP, SIGNALLED, 0);
    driver_remote(&ends.near, ends_far_memory(), ends.mr->rkey);
    driver_operands(&ends.near, 7, 42);
    driver_pointer(&ends.near, words + 1, 8, ends.mr->lkey);
    index = driver_end(&ends.near);
    driver_ring(&ends.near);
    EXPECT(entries_next(&ends.sent).operation, ==, ADD);
    ends_expect_entry(&ends.sent, ENTRY_REQUEST, index);
    EXPECT(words[0], ==, 40);
    EXPECT(words[1], ==, 42);
    EXPECT(*there, ==, 7);

    driver_begin(&ends.near, NOP, SIGNALLED, 0);
    index = driver_end(&ends.near);
    driver_ring(&ends.near);
    ends_expect_entry(&ends.sent, ENTRY_REQUEST, index);
    ends_close();
}

static void messages_take_receives_of_the_queue(const void *row)
{
    ends_open_connection();
    for (unsigned i = 0; i < 3; i++)
        ends_receive();
    uint16_t index = ends_send_inline(SEND_IMMEDIATE, "hello");
    ends_expect_entry(&ends.sent, ENTRY_REQUEST, index);
    struct entry entry = ends_expect_entry(&ends.received, ENTRY_SEND_IMMEDIATE, 0);
    EXPECT(entry.length, ==, 5);
    EXPECT(entry.immediate, ==, htonl(77));
    EXPECT(entry.number, ==, ends.far.qp->qp_num);
    EXPECT(memcmp(ends.memory + FAR, "hello", 5), ==, 0);

    driver_begin(&ends.near, WRITE_IMMEDIATE, SIGNALLED, htonl(78));
    driver_remote(&ends.near, ends_far_memory() + 100, ends.mr->rkey);
    driver_inline(&ends.near, "there", 5);
    driver_end(&ends.near);
    driver_ring(&ends.near);
    entry = ends_expect_entry(&ends.received, ENTRY_WRITE_IMMEDIATE, 1);
    EXPECT(entry.length, ==, 5);
    EXPECT(memcmp(ends.memory + FAR + 100, "there", 5), ==, 0);
    ends_close();
}

/* A work request has bytes in its place, and pointers, as UCX writes it. */
static void bytes_and_pointers_may_be_mixed(const void *row)
{
    ends_open_connection();
    ends_receive();
    memcpy(ends.memory, "pointer", 7);
    driver_begin(&ends.near, SEND, SIGNALLED, 0);
    driver_inline(&ends.near, "a head and a ", 13);
    driver_pointer(&ends.near, ends.memory, 7, ends.mr->lkey);
    uint16_t index = driver_end(&ends.near);
    driver_ring(&ends.near);
    ends_expect_entry(&ends.sent, ENTRY_REQUEST, index);
    EXPECT(entries_next(&ends.received).length, ==, 20);
    EXPECT(memcmp(ends.memory + FAR, "a head and a pointer", 20), ==, 0);
    ends_close();
}

/* Work requests of three blocks never end at the end of the ring. The receives are as many as the 16 bits of their
 * counter hold, and some more. */
static void rings_and_counters_wrap(const void *row)
{
    enum { ROUNDS = 66000, LENGTH = 150 };
    char text[LENGTH];
    ends_open_connection();
    for (unsigned i = 0; i < RECEIVES; i++)
        ends_receive();
    for (unsigned i = 0; i < ROUNDS; i++) {
        memset(text, 'a' + (int)(i % 26), LENGTH);
        driver_begin(&ends.near, SEND, i % 4 ? 0 : SIGNALLED, 0);
        driver_inline(&ends.near, text, LENGTH);
        uint16_t index = driver_end(&ends.near);
        driver_ring(&ends.near);
        if (i % 4 == 0)
            ends_expect_entry(&ends.sent, ENTRY_REQUEST, index);
        EXPECT(ends_expect_entry(&ends.received, ENTRY_SEND, (uint16_t)i).length, ==, LENGTH);
        EXPECT(memcmp(ends.memory + FAR, text, LENGTH), ==, 0);
        ends_receive();
    }
    ends_close();
}

static void entries_may_have_128_bytes(const void *row)
{
    ends_open_queues(128);
    driver_open(&ends.near, ends_make_qp(IBV_QPT_RC, NULL));
    ends_connect_itself(ends.near.qp);
    ends.far = ends.near;
    driver_receive(&ends.near, ends.memory + FAR, 64, ends.mr->lkey);
    uint16_t index = ends_send_inline(SEND, "x");
    ends_expect_entry(&ends.received, ENTRY_SEND, 0);
    ends_expect_entry(&ends.sent, ENTRY_REQUEST, index);
    ends_close();
}

/* --- what is wrong */

/* Ends the work request that was begun, as one with so many units: it is refused, and what follows is flushed. */
static void expect_malformed(uint8_t units)
{
    uint16_t index = driver_end_as(&ends.near, units);
    driver_begin(&ends.near, NOP, SIGNALLED, 0);
    uint16_t next = driver_end(&ends.near);
    driver_ring(&ends.near);
    struct entry entry = ends_expect_entry(&ends.sent, ENTRY_FAILED_REQUEST, index);
    EXPECT(entry.syndrome, ==, 2);
    if (units && units < 12)
        EXPECT(ends_expect_entry(&ends.sent, ENTRY_FAILED_REQUEST, next).syndrome, ==, 5);
    EXPECT(local_state(ends.near.qp), ==, IBV_QPS_ERR);
    ends_close();
}

static void a_work_request_without_units_ends_all(const void *row)
{
    ends_open_connection();
    driver_begin(&ends.near, SEND, SIGNALLED, 0);
    expect_malformed(0);
}

static void a_work_request_beyond_the_record_ends_all(const void *row)
{
    ends_open_connection();
    driver_begin(&ends.near, SEND, SIGNALLED, 0);
    expect_malformed(40);
}

static void an_operation_that_is_not_known_fails(const void *row)
{
    ends_open_connection();
    driver_begin(&ends.near, 0x3f, SIGNALLED, 0);
    expect_malformed(1);
}

static void a_write_without_an_address_fails(const void *row)
{
    ends_open_connection();
    driver_begin(&ends.near, WRITE, SIGNALLED, 0);
    expect_malformed(1);
}

static void bytes_that_end_after_the_work_request_fail(const void *row)
{
    ends_open_connection();
    driver_begin(&ends.near, SEND, SIGNALLED, 0);
    driver_unit(&ends.near, &(const uint32_t[4]){htonl(1u << 31 | 100)});
    expect_malformed(2);
}

static void a_read_has_no_bytes_in_its_place(const void *row)
{
    ends_open_connection();
    driver_begin(&ends.near, READ, SIGNALLED, 0);
    driver_remote(&ends.near, ends_far_memory(), ends.mr->rkey);
    driver_inline(&ends.near, "x", 1);
    expect_malformed(3);
}

static void operations_on_tags_need_a_list(const void *row)
{
    ends_open_connection();
    driver_begin(&ends.near, TAGS, SIGNALLED, 0);
    driver_unit(&ends.near, &(const uint32_t[4]){htonl(0x10c00001)});
    driver_unit(&ends.near, &(const uint32_t[4]){0});
    expect_malformed(3);
}

static void a_wrong_key_fails_as_on_calls(const void *row)
{
    ends_open_connection();
    driver_begin(&ends.near, WRITE, SIGNALLED, 0);
    driver_remote(&ends.near, ends_far_memory(), ends.mr->rkey ^ 0x100);
    driver_pointer(&ends.near, ends.memory, 8, ends.mr->lkey);
    uint16_t index = driver_end(&ends.near);
    driver_ring(&ends.near);
    EXPECT(ends_expect_entry(&ends.sent, ENTRY_FAILED_REQUEST, index).syndrome, ==, 0x13);
    EXPECT(local_state(ends.near.qp), ==, IBV_QPS_ERR);
    index = ends_send_inline(SEND, "flushed");
    EXPECT(ends_expect_entry(&ends.sent, ENTRY_FAILED_REQUEST, index).syndrome, ==, 5);
    ends_close();
}

/* The receives that were posted, and never taken, are flushed with the queue pair. */
static void posted_receives_are_flushed(const void *row)
{
    ends_open_connection();
    ends_receive();
    ends_receive();
    EXPECT(ibv_modify_qp(ends.far.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE), ==, 0);
    for (uint16_t i = 0; i < 2; i++)
        EXPECT(ends_expect_entry(&ends.received, ENTRY_FAILED_RECEIVE, i).syndrome, ==, 5);
    ends_close();
}

/* --- states */

static void a_doorbell_before_rts_is_obeyed_later(const void *row)
{
    ends_open_queues(64);
    struct ibv_qp *qp = ends_make_qp(IBV_QPT_RC, NULL);
    driver_open(&ends.near, qp);
    ends.far = ends.near;
    local_initialize(qp);
    driver_receive(&ends.near, ends.memory + FAR, 64, ends.mr->lkey);
    uint16_t index = ends_send_inline(SEND, "early");
    ends_expect_nothing(&ends.sent);
    local_receive_from(qp, qp->qp_num);
    ends_expect_nothing(&ends.sent);
    local_send(qp);
    ends_expect_entry(&ends.sent, ENTRY_REQUEST, index);
    ends_expect_entry(&ends.received, ENTRY_SEND, 0);
    ends_close();
}

static void a_reset_lets_indices_begin_anew(const void *row)
{
    ends_open_connection();
    ends_receive();
    ends_send_inline(SEND, "before");
    ends_expect_entry(&ends.sent, ENTRY_REQUEST, 0);
    entries_next(&ends.received);
    struct ibv_qp *both[] = {ends.near.qp, ends.far.qp};
    for (unsigned i = 0; i < 2; i++)
        EXPECT(ibv_modify_qp(both[i], &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE), ==, 0);
    EXPECT(ends.near.queues.dbrec[1], ==, 0);
    driver_reset(&ends.near);
    driver_reset(&ends.far);
    local_connect(ends.near.qp, ends.far.qp);
    ends_receive();
    uint16_t index = ends_send_inline(SEND, "after");
    EXPECT(index, ==, 0);
    ends_expect_entry(&ends.sent, ENTRY_REQUEST, 0);
    ends_expect_entry(&ends.received, ENTRY_SEND, 0);
    EXPECT(memcmp(ends.memory + FAR, "after", 5), ==, 0);
    ends_close();
}

/* SMART asks only for the registers, and posts by calls. */
static void a_described_queue_pair_takes_work_of_calls(const void *row)
{
    ends_open_connection();
    ends_receive();
    struct ibv_sge sge = {(uintptr_t)ends.memory, 8, ends.mr->lkey};
    struct ibv_send_wr wr = {.wr_id = 5,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    EXPECT(ibv_post_send(ends.near.qp, &wr, &bad), ==, 0);
    ends_expect_entry(&ends.sent, ENTRY_REQUEST, 5);
    ends_expect_entry(&ends.received, ENTRY_SEND, 0);
    ends_close();
}

/* Completions that were not polled when the queue is described lie in its memory. */
static void completions_move_into_memory(const void *row)
{
    ends_open_queues(64);
    struct ibv_cq *cq = ends_make_cq(10, 0, 64);
    struct ibv_qp *qp = local_loop(ends.pd, cq);
    struct ibv_recv_wr receive_wr = {.wr_id = 3}, *bad_receive;
    struct ibv_send_wr wr = {.wr_id = 4, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;
    EXPECT(ibv_post_recv(qp, &receive_wr, &bad_receive), ==, 0);
    EXPECT(ibv_post_send(qp, &wr, &bad), ==, 0);
    for (unsigned i = 0; i < 2; i++) {
        struct ibv_cq *of;
        void *context;
        EXPECT(ibv_req_notify_cq(cq, 0), ==, 0);
        EXPECT(ibv_get_cq_event(ends.channel, &of, &context), ==, 0);
        ibv_ack_cq_events(of, 1);
    }
    entries_open(&ends.sent, cq); /* in place of the first one */
    unsigned sum = entries_next(&ends.sent).counter;
    sum += entries_next(&ends.sent).counter;
    EXPECT(sum, ==, 7);
    ends_close();
}

/* --- shared receive queues, other types */

/* The receive that is taken first is freed last, so that the links change their order. */
static void receives_of_a_shared_queue_are_linked(const void *row)
{
    enum { ROUNDS = 3000 };
    struct shared shared;
    ends_open_queues(64);
    struct ibv_srq *srq = ibv_create_srq(ends.pd, &(struct ibv_srq_init_attr){.attr = {.max_wr = 3, .max_sge = 1}});
    EXPECT_TRUE(srq);
    shared_open(&shared, srq);
    EXPECT(shared.queue.tail, ==, 3);
    struct ibv_qp *near = ends_make_qp(IBV_QPT_RC, NULL), *far = ends_make_qp(IBV_QPT_RC, srq);
    local_connect(near, far);
    driver_open(&ends.near, near);
    uint16_t held = 0;
    for (unsigned i = 0; i < 3; i++)
        shared_receive(&shared, ends.memory + FAR, 64, ends.mr->lkey);
    for (unsigned i = 0; i < ROUNDS; i++) {
        ends_send_inline(SEND, i % 2 ? "odd" : "even");
        entries_next(&ends.sent);
        struct entry entry = entries_next(&ends.received);
        EXPECT(entry.opcode, ==, ENTRY_SEND);
        EXPECT(entry.length, ==, i % 2 ? 3 : 4);
        if (i % 2) {
            shared_free(&shared, entry.counter);
            shared_free(&shared, held);
            shared_receive(&shared, ends.memory + FAR, 64, ends.mr->lkey);
            shared_receive(&shared, ends.memory + FAR, 64, ends.mr->lkey);
        }
        held = entry.counter;
    }
    ends_close();
}

static struct mlx5_wqe_av *describe_own_address(void)
{
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
    struct mlx5dv_ah address = {0};
    EXPECT(ibv_query_gid(ends.context, 1, 0, &attr.grh.dgid), ==, 0);
    struct ibv_ah *ah = ibv_create_ah(ends.pd, &attr);
    EXPECT_TRUE(ah);
    struct mlx5dv_obj obj = {.ah = {.in = ah, .out = &address}};
    EXPECT(mlx5dv_init_obj(&obj, MLX5DV_OBJ_AH), ==, 0);
    struct mlx5_wqe_av *copy = malloc(sizeof *copy);
    *copy = *address.av;
    EXPECT(ibv_destroy_ah(ah), ==, 0);
    return copy;
}

static void datagrams_have_their_address_in_the_work_request(const void *row)
{
    ends_open_queues(64);
    struct ibv_qp *near = ends_make_qp(IBV_QPT_UD, NULL), *far = ends_make_qp(IBV_QPT_UD, NULL);
    for (unsigned i = 0; i < 2; i++) {
        struct ibv_qp *qp = i ? far : near;
        local_initialize(qp);
        local_receive_from(qp, 0);
        local_send(qp);
    }
    struct ibv_qp_attr asked;
    struct ibv_qp_init_attr init;
    EXPECT(ibv_query_qp(far, &asked, IBV_QP_QKEY, &init), ==, 0);
    driver_open(&ends.near, near);
    driver_open(&ends.far, far);
    ends_receive();
    struct mlx5_wqe_av *address = describe_own_address();
    driver_begin(&ends.near, SEND_IMMEDIATE, SIGNALLED, htonl(9));
    driver_address(&ends.near, address, far->qp_num, (uint64_t)asked.qkey << 32);
    driver_inline(&ends.near, "datagram", 8);
    uint16_t index = driver_end(&ends.near);
    driver_ring(&ends.near);
    ends_expect_entry(&ends.sent, ENTRY_REQUEST, index);
    struct entry entry = ends_expect_entry(&ends.received, ENTRY_SEND_IMMEDIATE, 0);
    EXPECT(entry.length, ==, 48);
    EXPECT(entry.source, ==, near->qp_num);
    EXPECT(memcmp(ends.memory + FAR + 40, "datagram", 8), ==, 0);
    free(address);
    ends_close();
}

static void all(void)
{
    CASE(each_operation_is_done);
    CASE(messages_take_receives_of_the_queue);
    CASE(bytes_and_pointers_may_be_mixed);
    CASE(rings_and_counters_wrap);
    CASE(entries_may_have_128_bytes);
    CASE(a_work_request_without_units_ends_all);
    CASE(a_work_request_beyond_the_record_ends_all);
    CASE(an_operation_that_is_not_known_fails);
    CASE(a_write_without_an_address_fails);
    CASE(bytes_that_end_after_the_work_request_fail);
    CASE(a_read_has_no_bytes_in_its_place);
    CASE(operations_on_tags_need_a_list);
    CASE(a_wrong_key_fails_as_on_calls);
    CASE(posted_receives_are_flushed);
    CASE(a_doorbell_before_rts_is_obeyed_later);
    CASE(a_reset_lets_indices_begin_anew);
    CASE(a_described_queue_pair_takes_work_of_calls);
    CASE(completions_move_into_memory);
    CASE(receives_of_a_shared_queue_are_linked);
    CASE(datagrams_have_their_address_in_the_work_request);
}

int main(int argc, char **argv)
{
    return harness_main(argc, argv, all);
}
