/* The batches that the interface lets a program hold: completions between ibv_start_poll and ibv_end_poll, work
 * requests between ibv_wr_start and ibv_wr_complete. Every other verb works meanwhile, in this thread and in others, as
 * with adapters, where such a batch is a matter of one queue only. All in this process. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/patience.h"
#include "builder_fixture.h"

enum { SOON = 100, LIVES = 300, STREAM = 2000 };

/* An extended CQ with one completion in it, and what else there is. */
struct shelf {
    struct builder builder;
    struct ibv_cq_ex *cq;
    struct ibv_qp *qp, *other; /* on that CQ, connected with themselves; the completion is of the first */
};

static struct ibv_cq_ex *make_cq(struct ibv_context *context)
{
    struct ibv_cq_init_attr_ex attr = {.cqe = 64, .wc_flags = IBV_WC_STANDARD_FLAGS};
    struct ibv_cq_ex *cq = ibv_create_cq_ex(context, &attr);
    EXPECT_TRUE(cq);
    return cq;
}

static void write_once(const struct builder *builder, struct ibv_qp *qp, uint64_t id)
{
    struct ibv_sge sge = {(uintptr_t)builder->memory, 8, builder->mr->lkey};
    struct ibv_send_wr wr = {.wr_id = id,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {builder_target(builder), builder->mr->rkey}},
                       *bad;
    EXPECT(ibv_post_send(qp, &wr, &bad), ==, 0);
}

static struct shelf open_shelf(void)
{
    struct shelf shelf = {.builder = builder_open_connected()};
    alarm((unsigned)patience(SOON));
    shelf.cq = make_cq(shelf.builder.context);
    shelf.qp = local_loop(shelf.builder.pd, ibv_cq_ex_to_cq(shelf.cq));
    shelf.other = local_loop(shelf.builder.pd, ibv_cq_ex_to_cq(shelf.cq));
    return shelf;
}

static void close_shelf(struct shelf *shelf)
{
    builder_close(&shelf->builder);
}

static void start_batch(struct ibv_cq_ex *cq)
{
    struct ibv_poll_cq_attr attr = {0};
    while (ibv_start_poll(cq, &attr))
        ;
}

static void begin_batch(struct shelf *shelf)
{
    write_once(&shelf->builder, shelf->qp, 1);
    start_batch(shelf->cq);
}

/* Runs `body` in another thread to its end. */
static void *elsewhere(void *(*body)(void *), void *argument)
{
    pthread_t thread;
    void *result;
    EXPECT(pthread_create(&thread, NULL, body, argument), ==, 0);
    EXPECT(pthread_join(thread, &result), ==, 0);
    return result;
}

/* -- batches of completions */

static void *destroy_the_other(void *argument)
{
    struct shelf *shelf = argument;
    EXPECT(ibv_destroy_qp(shelf->other), ==, 0);
    return NULL;
}

static void *reset_the_other(void *argument)
{
    struct shelf *shelf = argument;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
    EXPECT(ibv_modify_qp(shelf->other, &attr, IBV_QP_STATE), ==, 0);
    return NULL;
}

static void *destroy_a_work_queue(void *argument)
{
    struct shelf *shelf = argument;
    struct ibv_wq_init_attr init = {
        .wq_type = IBV_WQT_RQ, .max_wr = 4, .max_sge = 1, .pd = shelf->builder.pd, .cq = ibv_cq_ex_to_cq(shelf->cq)};
    struct ibv_wq *wq = ibv_create_wq(shelf->builder.context, &init);
    EXPECT_TRUE(wq);
    EXPECT(ibv_destroy_wq(wq), ==, 0);
    return NULL;
}

static void *destroy_an_srq_with_tags(void *argument)
{
    struct shelf *shelf = argument;
    struct ibv_srq_init_attr_ex init = {.attr = {.max_wr = 4, .max_sge = 1},
                                        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                                                     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
                                        .srq_type = IBV_SRQT_TM,
                                        .pd = shelf->builder.pd,
                                        .cq = ibv_cq_ex_to_cq(shelf->cq),
                                        .tm_cap = {.max_num_tags = 4, .max_ops = 4}};
    struct ibv_srq *srq = ibv_create_srq_ex(shelf->builder.context, &init);
    EXPECT_TRUE(srq);
    EXPECT(ibv_destroy_srq(srq), ==, 0);
    return NULL;
}

static void *resize_the_queue(void *argument)
{
    struct shelf *shelf = argument;
    EXPECT(ibv_resize_cq(ibv_cq_ex_to_cq(shelf->cq), 200), ==, 0);
    return NULL;
}

static void *poll_the_queue(void *argument)
{
    struct shelf *shelf = argument;
    struct ibv_wc wc;
    EXPECT(ibv_poll_cq(ibv_cq_ex_to_cq(shelf->cq), 1, &wc), >=, 0);
    return NULL;
}

/* Each of these takes process-wide locks. */
static void *create_and_destroy(void *argument)
{
    struct shelf *shelf = argument;
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
    EXPECT(ibv_query_gid(shelf->builder.context, 1, 0, &attr.grh.dgid), ==, 0);
    struct ibv_ah *ah = ibv_create_ah(shelf->builder.pd, &attr);
    struct ibv_mr *mr = ibv_reg_mr(shelf->builder.pd, shelf->builder.memory, 4096, 0);
    struct ibv_mw *mw = ibv_alloc_mw(shelf->builder.pd, IBV_MW_TYPE_1);
    struct ibv_qp *qp = local_loop(shelf->builder.pd, ibv_cq_ex_to_cq(shelf->cq));
    EXPECT_TRUE(ah && mr && mw && qp);
    EXPECT(ibv_destroy_qp(qp), ==, 0);
    EXPECT(ibv_dealloc_mw(mw), ==, 0);
    EXPECT(ibv_dereg_mr(mr), ==, 0);
    EXPECT(ibv_destroy_ah(ah), ==, 0);
    return NULL;
}

struct deed {
    const char *what;
    void *(*body)(void *);
    bool here, elsewhere; /* may it be done by the thread that has the batch, by another */
};

static const struct deed deeds[] = {
    {"a queue pair of the CQ is destroyed", destroy_the_other, true, true},
    {"a queue pair of the CQ is reset", reset_the_other, true, true},
    {"a work queue of the CQ is destroyed", destroy_a_work_queue, true, true},
    {"an SRQ of the CQ is destroyed", destroy_an_srq_with_tags, true, true},
    {"the CQ is resized", resize_the_queue, true, true},
    {"the CQ is polled", poll_the_queue, true, false},
    {"objects are made and destroyed", create_and_destroy, true, true},
};

static void within_a_batch_of_completions(const void *row)
{
    const struct deed *deed = row;
    struct shelf shelf = open_shelf();
    begin_batch(&shelf);
    uint64_t id = shelf.cq->wr_id;
    deed->body(&shelf);
    EXPECT(shelf.cq->wr_id, ==, id);
    EXPECT(ibv_wc_read_qp_num(shelf.cq), ==, shelf.qp->qp_num);
    EXPECT(ibv_next_poll(shelf.cq), ==, ENOENT);
    ibv_end_poll(shelf.cq);
    begin_batch(&shelf);
    ibv_end_poll(shelf.cq);
    close_shelf(&shelf);
}

static void beside_a_batch_of_completions(const void *row)
{
    const struct deed *deed = row;
    struct shelf shelf = open_shelf();
    begin_batch(&shelf);
    elsewhere(deed->body, &shelf);
    create_and_destroy(&shelf);
    EXPECT(shelf.cq->wr_id, ==, 1);
    EXPECT(ibv_next_poll(shelf.cq), ==, ENOENT);
    ibv_end_poll(shelf.cq);
    begin_batch(&shelf);
    ibv_end_poll(shelf.cq);
    close_shelf(&shelf);
}

static void *end_the_batch(void *argument)
{
    struct shelf *shelf = argument;
    ibv_end_poll(shelf->cq);
    return NULL;
}

static void a_batch_may_be_ended_by_another_thread(const void *row)
{
    struct shelf shelf = open_shelf();
    for (int i = 0; i < 3; i++) {
        begin_batch(&shelf);
        elsewhere(end_the_batch, &shelf);
    }
    close_shelf(&shelf);
}

struct crossing {
    struct builder *builder;
    pthread_barrier_t *barrier;
    struct ibv_cq_ex *own;
    struct ibv_qp *on_the_other;
};

static void *destroy_on_the_other_CQ(void *argument)
{
    struct crossing *crossing = argument;
    start_batch(crossing->own);
    pthread_barrier_wait(crossing->barrier);
    EXPECT(ibv_destroy_qp(crossing->on_the_other), ==, 0);
    ibv_end_poll(crossing->own);
    return NULL;
}

static void two_batches_that_each_destroy_on_the_other_CQ_both_end(const void *row)
{
    struct builder builder = builder_open_connected();
    struct ibv_cq_ex *cqs[] = {make_cq(builder.context), make_cq(builder.context)};
    struct crossing crossings[2];
    pthread_barrier_t barrier;
    pthread_t threads[2];
    alarm((unsigned)patience(SOON));
    pthread_barrier_init(&barrier, NULL, 2);
    for (int i = 0; i < 2; i++) {
        write_once(&builder, local_loop(builder.pd, ibv_cq_ex_to_cq(cqs[i])), 1);
        crossings[i] = (struct crossing){&builder, &barrier, cqs[i], local_loop(builder.pd, ibv_cq_ex_to_cq(cqs[!i]))};
    }
    for (int i = 0; i < 2; i++)
        EXPECT(pthread_create(&threads[i], NULL, destroy_on_the_other_CQ, &crossings[i]), ==, 0);
    for (int i = 0; i < 2; i++)
        EXPECT(pthread_join(threads[i], NULL), ==, 0);
    pthread_barrier_destroy(&barrier);
    builder_close(&builder);
}

/* The lives of queue pairs on one CQ: each writes with its number as wr_id and is destroyed. */
struct lives {
    struct builder *builder;
    struct ibv_cq_ex *cq;
    atomic_uint over, wrong; /* lives that have ended; completions that were seen of such */
    atomic_bool done;
};

static void *poll_lives(void *argument)
{
    struct lives *lives = argument;
    struct ibv_cq *cq = ibv_cq_ex_to_cq(lives->cq);
    struct ibv_poll_cq_attr attr = {0};
    struct ibv_wc wc[4];
    while (!lives->done) {
        unsigned over = lives->over;
        int count = ibv_poll_cq(cq, 4, wc);
        for (int i = 0; i < count; i++)
            lives->wrong += wc[i].wr_id < over;
        over = lives->over;
        if (ibv_start_poll(lives->cq, &attr))
            continue;
        do
            lives->wrong += lives->cq->wr_id < over;
        while (over = lives->over, !ibv_next_poll(lives->cq));
        ibv_end_poll(lives->cq);
    }
    return NULL;
}

/* "Returns when no poller uses one of them any more" (verbs/queue/cq.h), without waiting for the end of its batch. */
static void nobody_sees_completions_of_a_queue_pair_that_is_gone(const void *row)
{
    struct builder builder = builder_open_connected();
    struct lives lives = {.builder = &builder, .cq = make_cq(builder.context)};
    pthread_t poller;
    alarm((unsigned)patience(SOON));
    EXPECT(pthread_create(&poller, NULL, poll_lives, &lives), ==, 0);
    for (unsigned life = 0; life < LIVES; life++) {
        struct ibv_qp *qp = local_loop(builder.pd, ibv_cq_ex_to_cq(lives.cq));
        for (int i = 0; i < 4; i++)
            write_once(&builder, qp, life);
        EXPECT(ibv_destroy_qp(qp), ==, 0);
        lives.over = life + 1;
    }
    lives.done = true;
    EXPECT(pthread_join(poller, NULL), ==, 0);
    EXPECT(lives.wrong, ==, 0);
    builder_close(&builder);
}

/* -- the queue changes under its pollers */

struct stream {
    struct ibv_cq_ex *cq;
    atomic_uint seen; /* completions, whose wr_id counts up */
    atomic_bool broken;
    unsigned wanted;
};

static void *poll_stream(void *argument)
{
    struct stream *stream = argument;
    struct ibv_poll_cq_attr attr = {0};
    while (stream->seen < stream->wanted && !stream->broken) {
        if (ibv_start_poll(stream->cq, &attr))
            continue;
        do
            stream->broken |= stream->cq->wr_id != stream->seen++;
        while (!ibv_next_poll(stream->cq));
        ibv_end_poll(stream->cq);
    }
    return NULL;
}

static void a_CQ_that_is_resized_under_its_poller_loses_nothing(const void *row)
{
    struct builder builder = builder_open_connected();
    struct stream stream = {.cq = make_cq(builder.context), .wanted = STREAM};
    struct ibv_cq *cq = ibv_cq_ex_to_cq(stream.cq);
    struct ibv_qp *qp = local_loop(builder.pd, cq);
    pthread_t poller;
    alarm((unsigned)patience(SOON));
    EXPECT(pthread_create(&poller, NULL, poll_stream, &stream), ==, 0);
    for (unsigned sent = 0; sent < STREAM && !stream.broken;) {
        for (; sent < STREAM && sent - stream.seen < 16; sent++)
            write_once(&builder, qp, sent);
        EXPECT(ibv_resize_cq(cq, sent % 2 ? 64 : 32), ==, 0);
    }
    EXPECT(pthread_join(poller, NULL), ==, 0);
    EXPECT_TRUE(!stream.broken);
    builder_close(&builder);
}

/* -- batches of work requests */

static void *deregister(void *argument)
{
    EXPECT(ibv_dereg_mr(argument), ==, 0);
    return NULL;
}

static void *deallocate(void *argument)
{
    EXPECT(ibv_dealloc_mw(argument), ==, 0);
    return NULL;
}

static void begin_write(struct builder *builder)
{
    ibv_wr_rdma_write(builder_start(builder), builder->mr->rkey, builder_target(builder));
    builder_set_source(builder, "held");
}

static void a_batch_of_work_requests_holds_up_no_deregistration(const void *row)
{
    struct builder builder = builder_open_connected();
    struct ibv_mr *mr = ibv_reg_mr(builder.pd, builder.memory, 64, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_mw *mw = ibv_alloc_mw(builder.pd, IBV_MW_TYPE_2);
    alarm((unsigned)patience(SOON));
    EXPECT_TRUE(mr && mw);
    begin_write(&builder);
    elsewhere(deregister, mr);
    elsewhere(deallocate, mw);
    mr = ibv_reg_mr(builder.pd, builder.memory, 64, IBV_ACCESS_LOCAL_WRITE);
    EXPECT_TRUE(mr);
    EXPECT(ibv_dereg_mr(mr), ==, 0);
    builder_complete(&builder, IBV_WC_RDMA_WRITE);
    builder_close(&builder);
}

/* Work that was posted before is sent, with packets for this very queue pair. */
static void within_a_batch_of_work_requests_earlier_work_completes(const void *row)
{
    struct builder builder = builder_open_connected();
    alarm((unsigned)patience(SOON));
    builder_post_receive(&builder, 64);
    write_once(&builder, builder.qp, 7);
    begin_write(&builder);
    EXPECT(local_poll(builder.sent).wr_id, ==, 7);
    builder_complete(&builder, IBV_WC_RDMA_WRITE);
    builder_close(&builder);
}

static void connect_again(struct ibv_qp *qp)
{
    local_initialize(qp);
    local_receive_from(qp, qp->qp_num);
    local_send(qp);
}

static void within_a_batch_of_work_requests_others_go_on(const void *row)
{
    struct builder builder = builder_open_connected();
    struct ibv_qp *other = builder_make_qp(&builder, IBV_QPT_RC, OPS_RC), *fresh;
    alarm((unsigned)patience(SOON));
    connect_again(other);
    for (int i = 0; i < 3 * SENDS; i++) {
        begin_write(&builder);
        write_once(&builder, other, 9);
        EXPECT(local_poll(builder.sent).wr_id, ==, 9);
        fresh = local_loop(builder.pd, builder.sent);
        EXPECT(ibv_destroy_qp(fresh), ==, 0);
        builder_complete(&builder, IBV_WC_RDMA_WRITE);
    }
    builder_close(&builder);
}

static void to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = {.qp_state = state};
    EXPECT(ibv_modify_qp(qp, &attr, IBV_QP_STATE), ==, 0);
}

/* Work that is posted in the error state is flushed (IBA 10.3.1.5). */
static void a_queue_pair_fails_within_its_batch_of_work_requests(const void *row)
{
    struct builder builder = builder_open_connected();
    alarm((unsigned)patience(SOON));
    begin_write(&builder);
    to_state(builder.qp, IBV_QPS_ERR);
    EXPECT(ibv_wr_complete(builder.ex), ==, 0);
    EXPECT(local_poll(builder.sent).status, ==, IBV_WC_WR_FLUSH_ERR);
    builder_close(&builder);
}

/* A batch that was begun before the reset is gone with it, even if the queue pair can send again. */
static void a_queue_pair_is_reset_within_its_batch_of_work_requests(const void *row)
{
    struct builder builder = builder_open_connected();
    alarm((unsigned)patience(SOON));
    for (int again = 0; again < 2; again++) {
        begin_write(&builder);
        to_state(builder.qp, IBV_QPS_RESET);
        if (again)
            connect_again(builder.qp);
        EXPECT(ibv_wr_complete(builder.ex), ==, EINVAL);
        local_poll_nothing(builder.sent);
        if (!again)
            connect_again(builder.qp);
        begin_write(&builder);
        builder_complete(&builder, IBV_WC_RDMA_WRITE);
    }
    builder_close(&builder);
}

/* The page has no word for it; an adapter's library waits for itself. */
static void posting_within_a_batch_of_ones_own_is_refused(const void *row)
{
    struct builder builder = builder_open_connected();
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad = NULL;
    struct ibv_mw *mw = ibv_alloc_mw(builder.pd, IBV_MW_TYPE_1);
    struct ibv_mw_bind bind = {.bind_info = {builder.mr, builder_target(&builder), 64, IBV_ACCESS_REMOTE_WRITE}};
    alarm((unsigned)patience(SOON));
    begin_write(&builder);
    EXPECT(ibv_post_send(builder.qp, &wr, &bad), ==, EINVAL);
    EXPECT_TRUE(bad == &wr);
    EXPECT(ibv_bind_mw(builder.qp, mw, &bind), ==, EINVAL);
    builder_complete(&builder, IBV_WC_RDMA_WRITE);
    begin_write(&builder);
    ibv_wr_start(builder.ex); /* has no way to say so: the batch is spoilt */
    EXPECT(ibv_wr_complete(builder.ex), ==, EINVAL);
    begin_write(&builder);
    builder_complete(&builder, IBV_WC_RDMA_WRITE);
    builder_close(&builder);
}

/* -- forks */

/* In the child only the thread that forked continues: it ends what it has begun. */
static void a_process_forks_within_its_batches(const void *row)
{
    struct shelf shelf = open_shelf();
    int status;
    begin_batch(&shelf);
    begin_write(&shelf.builder);
    pid_t child = fork();
    if (!child) {
        alarm((unsigned)patience(SOON));
        ibv_wr_abort(shelf.builder.ex);
        ibv_end_poll(shelf.cq);
        _exit(0);
    }
    EXPECT(waitpid(child, &status, 0), ==, child);
    EXPECT(status, ==, 0);
    builder_complete(&shelf.builder, IBV_WC_RDMA_WRITE);
    ibv_end_poll(shelf.cq);
    close_shelf(&shelf);
}

static void run_deeds(void)
{
    char title[160];
    for (size_t i = 0; i < COUNT(deeds); i++) {
        snprintf(title, sizeof title, "within a batch of completions %s", deeds[i].what);
        if (deeds[i].here)
            harness_run(title, within_a_batch_of_completions, &deeds[i]);
        snprintf(title, sizeof title, "beside a batch of completions %s", deeds[i].what);
        if (deeds[i].elsewhere)
            harness_run(title, beside_a_batch_of_completions, &deeds[i]);
    }
}

static void all(void)
{
    run_deeds();
    CASE(a_batch_may_be_ended_by_another_thread);
    CASE(two_batches_that_each_destroy_on_the_other_CQ_both_end);
    CASE(a_CQ_that_is_resized_under_its_poller_loses_nothing);
    CASE(nobody_sees_completions_of_a_queue_pair_that_is_gone);
    CASE(a_batch_of_work_requests_holds_up_no_deregistration);
    CASE(within_a_batch_of_work_requests_earlier_work_completes);
    CASE(within_a_batch_of_work_requests_others_go_on);
    CASE(a_queue_pair_fails_within_its_batch_of_work_requests);
    CASE(a_queue_pair_is_reset_within_its_batch_of_work_requests);
    CASE(posting_within_a_batch_of_ones_own_is_refused);
    CASE(a_process_forks_within_its_batches);
}

int main(int argc, char **argv)
{
    return harness_main(argc, argv, all);
}
