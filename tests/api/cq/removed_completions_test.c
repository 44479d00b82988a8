/* Completions of a queue pair that is destroyed or reset are gone: what was in the CQ without them is all that is in
 * it, for its size as well. A batch keeps other threads out. All in this process, with classic and with extended CQs.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/testing/patience.h"
#include "local_fixture.h"

enum { SIZE = 16, HALF = SIZE / 2, ROUNDS = 6, STREAM = 3000 };

struct counter {
    struct fixture fixture;
    struct ibv_cq *cq;
    bool extended; /* polled by its iterator */
};

static struct counter open_counter(const void *row, uint32_t flags)
{
    struct counter of = {.fixture = fixture_open(), .extended = *(const bool *)row};
    struct ibv_cq_init_attr_ex attr = {.cqe = SIZE, .wc_flags = IBV_WC_STANDARD_FLAGS};
    attr.channel = ibv_create_comp_channel(of.fixture.context);
    EXPECT_TRUE(attr.channel);
    attr.comp_mask = flags ? IBV_CQ_INIT_ATTR_MASK_FLAGS : 0;
    attr.flags = flags;
    of.cq = ibv_cq_ex_to_cq(ibv_create_cq_ex(of.fixture.context, &attr));
    EXPECT_TRUE(of.cq && of.cq->cqe == SIZE);
    return of;
}

static struct ibv_qp *make_qp(struct counter *of)
{
    return local_loop(of->fixture.pd, of->cq);
}

static bool has_event(struct counter *of, int wait)
{
    struct pollfd channel = {.fd = of->cq->channel->fd, .events = POLLIN};
    struct ibv_cq *cq;
    void *context;
    if (poll(&channel, 1, wait) <= 0)
        return false;
    EXPECT(ibv_get_cq_event(of->cq->channel, &cq, &context), ==, 0);
    ibv_ack_cq_events(cq, 1);
    return true;
}

/* The next event is for a later entry: an event for entries in the queue is raised at once. */
static void arm(struct counter *of)
{
    do
        EXPECT(ibv_req_notify_cq(of->cq, 0), ==, 0);
    while (has_event(of, 0));
}

/* Returns when the completions are in the CQ, which is not polled: each raises an event. */
static void write_many(struct counter *of, struct ibv_qp *qp, uint64_t from, uint64_t to)
{
    struct ibv_sge sge = {(uintptr_t)of->fixture.memory, 8, of->fixture.mr->lkey};
    struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1};
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.remote_addr = (uintptr_t)of->fixture.memory + 64;
    wr.wr.rdma.rkey = of->fixture.mr->rkey;
    for (wr.wr_id = from; wr.wr_id < to; wr.wr_id++) {
        arm(of);
        EXPECT(ibv_post_send(qp, &wr, &bad), ==, 0);
        EXPECT_TRUE(has_event(of, PATIENCE));
    }
}

/* The next completion; -1: no completion. */
static int64_t next_id(struct counter *of, struct ibv_qp *qp)
{
    struct ibv_cq_ex *cq = (struct ibv_cq_ex *)of->cq;
    struct ibv_poll_cq_attr attr = {0};
    struct ibv_wc wc = {0};
    if (!of->extended && ibv_poll_cq(of->cq, 1, &wc) == 1)
        return wc.status || wc.qp_num != qp->qp_num ? -2 : (int64_t)wc.wr_id;
    if (!of->extended || ibv_start_poll(cq, &attr))
        return -1;
    int64_t id = cq->status || ibv_wc_read_qp_num(cq) != qp->qp_num ? -2 : (int64_t)cq->wr_id;
    ibv_end_poll(cq);
    return id;
}

static void expect_ids(struct counter *of, struct ibv_qp *qp, uint64_t from, uint64_t to)
{
    for (uint64_t id = from; id < to; id++)
        EXPECT(next_id(of, qp), ==, id);
}

static void flush_receives(struct ibv_qp *qp)
{
    struct ibv_recv_wr wr = {0}, *bad;
    for (int i = 0; i < HALF; i++)
        EXPECT(ibv_post_recv(qp, &wr, &bad), ==, 0);
    EXPECT(ibv_modify_qp(qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE), ==, 0);
}

static void what_destroyed_queue_pairs_left_takes_no_room(const void *row)
{
    struct counter of = open_counter(row, 0);
    for (int i = 0; i < ROUNDS; i++) {
        struct ibv_qp *qp = make_qp(&of);
        flush_receives(qp);
        EXPECT(ibv_destroy_qp(qp), ==, 0);
    }
    struct ibv_qp *qp = make_qp(&of);
    write_many(&of, qp, 0, SIZE);
    local_no_event(of.fixture.context);
    EXPECT(local_state(qp), ==, IBV_QPS_RTS);
    expect_ids(&of, qp, 0, SIZE);
    fixture_close(&of.fixture);
}

static void what_a_reset_queue_pair_left_takes_no_room(const void *row)
{
    struct counter of = open_counter(row, 0);
    struct ibv_qp *qp = make_qp(&of);
    for (int i = 0; i < ROUNDS; i++) {
        write_many(&of, qp, 0, HALF);
        EXPECT(ibv_modify_qp(qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE), ==, 0);
        local_initialize(qp);
        local_receive_from(qp, qp->qp_num);
        local_send(qp);
    }
    write_many(&of, qp, 0, SIZE);
    local_no_event(of.fixture.context);
    expect_ids(&of, qp, 0, SIZE);
    fixture_close(&of.fixture);
}

/* ibv_resize_cq(3) asks for room for the unpolled entries. */
static void what_a_destroyed_queue_pair_left_is_not_counted_when_resizing(const void *row)
{
    struct counter of = open_counter(row, 0);
    struct ibv_qp *one = make_qp(&of), *other = make_qp(&of);
    write_many(&of, one, 0, 5);
    write_many(&of, other, 0, 3);
    write_many(&of, one, 5, 10);
    EXPECT(ibv_destroy_qp(one), ==, 0);
    EXPECT(ibv_resize_cq(of.cq, 2), ==, EINVAL);
    EXPECT(ibv_resize_cq(of.cq, 4), ==, 0);
    expect_ids(&of, other, 0, 3);
    fixture_close(&of.fixture);
}

/* "CQE always will be written to next entry": among those that are there. */
static void what_a_destroyed_queue_pair_left_pushes_nobody_out(const void *row)
{
    struct counter of = open_counter(row, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN);
    struct ibv_qp *one = make_qp(&of), *other = make_qp(&of);
    write_many(&of, other, 0, 4);
    write_many(&of, one, 0, 12);
    EXPECT(ibv_destroy_qp(one), ==, 0);
    write_many(&of, other, 4, 8);
    expect_ids(&of, other, 0, 8);
    fixture_close(&of.fixture);
}

/* A batch between ibv_start_poll and ibv_end_poll, too: the completion at hand stays, the next is the next. */
static void a_batch_goes_on_behind_what_was_withdrawn(const void *row)
{
    struct counter of = open_counter(row, 0);
    struct ibv_qp *one = make_qp(&of), *other = make_qp(&of), *late = make_qp(&of);
    struct ibv_cq_ex *cq = (struct ibv_cq_ex *)of.cq;
    struct ibv_poll_cq_attr attr = {0};
    write_many(&of, one, 0, 1);
    for (uint64_t id = 0; id < 5; id++) {
        write_many(&of, other, id, id + 1);
        write_many(&of, one, id, id + 1);
    }
    uint32_t number = one->qp_num;
    EXPECT(ibv_start_poll(cq, &attr), ==, 0);
    EXPECT(ibv_destroy_qp(one), ==, 0);
    write_many(&of, late, 0, SIZE - 5);
    local_no_event(of.fixture.context);
    EXPECT(ibv_wc_read_qp_num(cq), ==, number);
    EXPECT(ibv_wc_read_opcode(cq), ==, IBV_WC_RDMA_WRITE);
    EXPECT(cq->wr_id, ==, 0);
    for (uint64_t id = 0; id < 5; id++) {
        EXPECT(ibv_next_poll(cq), ==, 0);
        EXPECT(ibv_wc_read_qp_num(cq), ==, other->qp_num);
        EXPECT(cq->wr_id, ==, id);
    }
    ibv_end_poll(cq);
    expect_ids(&of, late, 0, SIZE - 5);
    fixture_close(&of.fixture);
}

struct visitor {
    struct counter *of;
    atomic_int polled; /* entries; -1: its poll has not ended */
};

static void *poll_once(void *argument)
{
    struct visitor *visitor = argument;
    struct ibv_wc wc;
    atomic_store(&visitor->polled, ibv_poll_cq(visitor->of->cq, 1, &wc));
    return NULL;
}

/* The thread of the batch polls in its midst. Other threads wait for the end of the batch all the same. */
static void a_poll_within_a_batch_lets_no_other_in(const void *row)
{
    struct counter of = open_counter(row, 0);
    struct ibv_cq_ex *cq = (struct ibv_cq_ex *)of.cq;
    struct visitor visitor = {.of = &of, .polled = -1};
    enum { WAIT = 20000000 }; /* ns: a thread that is let in has polled by then */
    struct timespec let_in;
    struct ibv_wc wc;
    pthread_t thread;
    write_many(&of, make_qp(&of), 0, HALF);
    EXPECT(ibv_start_poll(cq, &(struct ibv_poll_cq_attr){0}), ==, 0);
    EXPECT(ibv_poll_cq(of.cq, 1, &wc), ==, 1);
    EXPECT(pthread_create(&thread, NULL, poll_once, &visitor), ==, 0);
    clock_gettime(CLOCK_REALTIME, &let_in);
    let_in.tv_sec += (let_in.tv_nsec += WAIT) / 1000000000;
    let_in.tv_nsec %= 1000000000;
    EXPECT(pthread_timedjoin_np(thread, NULL, &let_in), ==, ETIMEDOUT);
    EXPECT(atomic_load(&visitor.polled), ==, -1);
    ibv_end_poll(cq);
    EXPECT(pthread_join(thread, NULL), ==, 0);
    EXPECT(atomic_load(&visitor.polled), ==, 1);
    fixture_close(&of.fixture);
}

/* -- while another thread polls */

struct stream {
    struct counter of;
    struct ibv_qp *qp;
    atomic_uint seen; /* of the stream, whose work requests are numbered in order */
    atomic_bool broken;
};

static void look_at(struct stream *stream, uint32_t number, uint64_t id, enum ibv_wc_status status)
{
    if (number == stream->qp->qp_num)
        stream->broken |= status || id != stream->seen++;
}

static void poll_batch(struct stream *stream, struct ibv_cq_ex *cq)
{
    struct ibv_poll_cq_attr attr = {0};
    if (ibv_start_poll(cq, &attr))
        return;
    do
        look_at(stream, ibv_wc_read_qp_num(cq), cq->wr_id, cq->status);
    while (!ibv_next_poll(cq));
    ibv_end_poll(cq);
}

static void *poll_stream(void *argument)
{
    struct stream *stream = argument;
    struct ibv_wc wc[3];
    while (stream->seen < STREAM && !stream->broken) {
        if (stream->of.extended)
            poll_batch(stream, (struct ibv_cq_ex *)stream->of.cq);
        int count = stream->of.extended ? 0 : ibv_poll_cq(stream->of.cq, 3, wc);
        for (int i = 0; i < count; i++)
            look_at(stream, wc[i].qp_num, wc[i].wr_id, wc[i].status);
    }
    return NULL;
}

static void send_stream(struct stream *stream)
{
    struct ibv_sge sge = {(uintptr_t)stream->of.fixture.memory, 8, stream->of.fixture.mr->lkey};
    struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1};
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.remote_addr = (uintptr_t)stream->of.fixture.memory + 64;
    wr.wr.rdma.rkey = stream->of.fixture.mr->rkey;
    while (wr.wr_id < STREAM && !stream->broken) {
        struct ibv_qp *left = make_qp(&stream->of);
        flush_receives(left);
        for (; wr.wr_id < STREAM && wr.wr_id - stream->seen < HALF; wr.wr_id++)
            EXPECT(ibv_post_send(stream->qp, &wr, &bad), ==, 0);
        EXPECT(ibv_destroy_qp(left), ==, 0);
    }
}

static void a_stream_loses_nothing_when_others_are_withdrawn(const void *row)
{
    struct stream stream = {.of = open_counter(row, 0)};
    pthread_t poller;
    alarm((unsigned)PATIENCE_MANY_SECONDS);
    stream.qp = make_qp(&stream.of);
    EXPECT(pthread_create(&poller, NULL, poll_stream, &stream), ==, 0);
    send_stream(&stream);
    EXPECT(pthread_join(poller, NULL), ==, 0);
    EXPECT(stream.broken, ==, 0);
    local_no_event(stream.of.fixture.context);
    fixture_close(&stream.of.fixture);
}

static void for_both(const char *name, void (*body)(const void *))
{
    static const bool ways[] = {false, true};
    for (size_t i = 0; i < COUNT(ways); i++) {
        char title[128];
        snprintf(title, sizeof title, "%s CQ: %s", ways[i] ? "extended" : "classic", name);
        harness_run(title, body, &ways[i]);
    }
}
#define CASE_OF_BOTH(body) for_both(#body, body)

static void all(void)
{
    CASE_OF_BOTH(what_destroyed_queue_pairs_left_takes_no_room);
    CASE_OF_BOTH(what_a_reset_queue_pair_left_takes_no_room);
    CASE_OF_BOTH(what_a_destroyed_queue_pair_left_is_not_counted_when_resizing);
    CASE_OF_BOTH(what_a_destroyed_queue_pair_left_pushes_nobody_out);
    harness_run("a batch goes on behind what was withdrawn", a_batch_goes_on_behind_what_was_withdrawn, &(bool){true});
    harness_run("a poll within a batch lets no other in", a_poll_within_a_batch_lets_no_other_in, &(bool){true});
    CASE_OF_BOTH(a_stream_loses_nothing_when_others_are_withdrawn);
}

int main(int argc, char **argv)
{
    return harness_main(argc, argv, all);
}
