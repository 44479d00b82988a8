/* Scalable reliable datagrams of an EFA: what is refused, full queues, threads, cancellation, forks, and how queue
 * pairs and address handles end while work is under way. Run under profiles/efa.profile. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/patience.h"
#include "srd_end.h"

enum { FLUSHED = 1, ABORTED = 8, NUMBERS = 1 << 16, MANY = 200, THREADS = 8, EACH = 500 };

static const struct srd_wishes usual = {SRD_SENDS, SRD_RECEIVES, SRD_FOR_EVER};

/* An end with a handle, for work to itself. */
struct loop {
    struct ibv_context *context;
    struct srd_end end;
    struct ibv_ah *ah;
};

static struct loop open_loop(struct srd_wishes wishes)
{
    struct loop loop = {.context = srd_device()};
    loop.end = srd_open_on(loop.context, wishes);
    loop.ah = srd_handle(&loop.end);
    return loop;
}

static void close_loop(struct loop *loop)
{
    if (loop->ah)
        EXPECT(ibv_destroy_ah(loop->ah), ==, 0);
    srd_close(&loop->end);
    EXPECT(ibv_close_device(loop->context), ==, 0);
}

static struct srd_wr work_of(const struct loop *loop, enum ibv_wr_opcode opcode)
{
    return srd_wr(&loop->end, &loop->end, loop->ah, opcode, 8);
}

/* Two entries, of the send and of its receive, in any order. */
static void pass_message(struct loop *loop)
{
    srd_post_receive(&loop->end, 21, 64, 8);
    srd_fill(loop->end.memory, 8, 33);
    srd_post(&loop->end, work_of(loop, IBV_WR_SEND));
    uint64_t sum = 0;
    for (int i = 0; i < 2; i++) {
        struct ibv_wc wc = local_poll(loop->end.cq);
        EXPECT(wc.status, ==, IBV_WC_SUCCESS);
        sum += wc.wr_id;
    }
    EXPECT(sum, ==, 21 + 7);
    EXPECT_TRUE(srd_is_filled(loop->end.memory + 64, 8, 33));
}

/* ---- what is refused ---- */

static void other_ways_to_make_one_are_refused(const void *row)
{
    struct loop loop = open_loop(usual);
    struct ibv_qp_init_attr plain = {
        .send_cq = loop.end.cq, .recv_cq = loop.end.cq, .cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_DRIVER};
    struct ibv_qp_init_attr_ex extended = {.send_cq = loop.end.cq,
                                           .recv_cq = loop.end.cq,
                                           .cap = {1, 1, 1, 1, 0},
                                           .qp_type = IBV_QPT_DRIVER,
                                           .pd = loop.end.pd,
                                           .comp_mask = IBV_QP_INIT_ATTR_PD};
    EXPECT_ERRNO(ibv_create_qp(loop.end.pd, &plain), EOPNOTSUPP);
    EXPECT_ERRNO(ibv_create_qp_ex(loop.context, &extended), EOPNOTSUPP);
    EXPECT_ERRNO(efadv_create_driver_qp(loop.end.pd, &plain, 1), EOPNOTSUPP);
    struct ibv_qp *qp = efadv_create_driver_qp(loop.end.pd, &plain, EFADV_QP_DRIVER_TYPE_SRD);
    EXPECT_TRUE(qp);
    EXPECT(ibv_destroy_qp(qp), ==, 0);
    plain.qp_type = IBV_QPT_UD;
    EXPECT_ERRNO(efadv_create_driver_qp(loop.end.pd, &plain, EFADV_QP_DRIVER_TYPE_SRD), EINVAL);
    close_loop(&loop);
}

static void builders_of_other_operations_are_refused(const void *row)
{
    const uint64_t others[] = {IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, IBV_QP_EX_WITH_SEND_WITH_INV,
                               IBV_QP_EX_WITH_LOCAL_INV, IBV_QP_EX_WITH_BIND_MW};
    struct loop loop = open_loop(usual);
    for (size_t i = 0; i < COUNT(others); i++)
        EXPECT_ERRNO(srd_make_qp(loop.context, loop.end.pd, loop.end.cq, IBV_QP_EX_WITH_SEND | others[i], usual),
                     EOPNOTSUPP);
    close_loop(&loop);
}

/* The exit status of this program anew, started as one that asks a device of these capabilities. */
static int ask_device_with(const char *capabilities)
{
    char path[] = "/tmp/srd-XXXXXX", text[128];
    int file = mkstemp(path), status;
    EXPECT(file, >=, 0);
    int length = snprintf(text, sizeof text, "driver = efa\nqp_types = UD\nefa_caps = %s\n", capabilities);
    EXPECT(write(file, text, (size_t)length), ==, length);
    close(file);
    pid_t child = fork();
    if (!child) {
        setenv("SOFTVERBS_PROFILE", path, 1);
        execl("/proc/self/exe", "capabilities", capabilities, NULL);
        _exit(99);
    }
    EXPECT(waitpid(child, &status, 0), ==, child);
    unlink(path);
    return status;
}

/* Of each of SEND, READ and WRITE a bit of the exit status says that a queue pair can have its builder. */
static int be_asked(void)
{
    const uint64_t each[] = {IBV_QP_EX_WITH_SEND, IBV_QP_EX_WITH_RDMA_READ, IBV_QP_EX_WITH_RDMA_WRITE,
                             IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM};
    struct ibv_context *context = srd_device();
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, NULL, 0);
    int granted = 0;
    for (size_t i = 0; i < COUNT(each); i++) {
        errno = 0;
        bool made = srd_make_qp(context, pd, cq, each[i], (struct srd_wishes){1, 1, 0});
        granted |= made << i;
        if (!made && errno != EOPNOTSUPP)
            return 98;
    }
    return granted;
}

static void builders_need_the_capability_of_the_device(const void *row)
{
    EXPECT(WEXITSTATUS(ask_device_with("none")), ==, 1);
    EXPECT(WEXITSTATUS(ask_device_with("RDMA_READ")), ==, 1 | 2);
    EXPECT(WEXITSTATUS(ask_device_with("RDMA_WRITE")), ==, 1 | 4 | 8);
}

/* Each work request of an EFA has an entry. REASON_SEND_UNSIGNALLED */
static void work_that_is_unsignalled_or_ordered_is_EINVAL(const void *row)
{
    const unsigned wrong[] = {IBV_SEND_FENCE | IBV_SEND_SIGNALED, IBV_SEND_SOLICITED | IBV_SEND_SIGNALED,
                              IBV_SEND_FENCE};
    struct loop loop = open_loop(usual);
    struct ibv_sge sge = {(uintptr_t)loop.end.memory, 8, loop.end.mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
    wr.wr.ud.ah = loop.ah, wr.wr.ud.remote_qpn = loop.end.qp->qp_num, wr.wr.ud.remote_qkey = SRD_QKEY;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct srd_wr work = work_of(&loop, IBV_WR_SEND);
        work.flags = wrong[i];
        EXPECT(srd_try(&loop.end, &work), ==, EINVAL);
        wr.send_flags = wrong[i], bad = NULL;
        EXPECT(ibv_post_send(loop.end.qp, &wr, &bad), ==, EINVAL);
        EXPECT_TRUE(bad == &wr);
    }
    wr.send_flags = 0, bad = NULL;
    EXPECT(ibv_post_send(loop.end.qp, &wr, &bad), ==, EINVAL);
    EXPECT_TRUE(bad == &wr);
    local_poll_nothing(loop.end.cq);
    pass_message(&loop);
    close_loop(&loop);
}

static void ibv_post_send_takes_messages_alone(const void *row)
{
    const enum ibv_wr_opcode wrong[] = {IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
                                        IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_SEND_WITH_INV};
    struct loop loop = open_loop(usual);
    struct ibv_sge sge = {(uintptr_t)loop.end.memory, 8, loop.end.mr->lkey};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = wrong[i], .send_flags = IBV_SEND_SIGNALED};
        struct ibv_send_wr *bad = NULL;
        EXPECT(ibv_post_send(loop.end.qp, &wr, &bad), ==, EINVAL);
        EXPECT_TRUE(bad == &wr);
    }
    struct ibv_send_wr wr = {.wr_id = 7, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND_WITH_IMM};
    struct ibv_send_wr *bad;
    wr.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE, wr.imm_data = 5;
    wr.wr.ud.ah = loop.ah, wr.wr.ud.remote_qpn = loop.end.qp->qp_num, wr.wr.ud.remote_qkey = SRD_QKEY;
    srd_post_receive(&loop.end, 7, 64, 8);
    EXPECT(ibv_post_send(loop.end.qp, &wr, &bad), ==, 0);
    for (int i = 0; i < 2; i++)
        srd_expect(&loop.end, 7, IBV_WC_SUCCESS, 0);
    close_loop(&loop);
}

/* A builder's batch is taken as a whole, or not at all. */
static void a_batch_with_a_wrong_request_leaves_no_trace(const void *row)
{
    struct loop loop = open_loop(usual);
    struct srd_wr good = work_of(&loop, IBV_WR_SEND), wrong = good;
    wrong.flags = IBV_SEND_FENCE;
    srd_post_receive(&loop.end, 1, 64, 8);
    ibv_wr_start(loop.end.ex);
    srd_build(&loop.end, &good);
    srd_build(&loop.end, &wrong);
    EXPECT(ibv_wr_complete(loop.end.ex), ==, EINVAL);
    local_poll_nothing(loop.end.cq);
    wrong.flags = 0, wrong.ah = NULL; /* ibv_wr_set_ud_addr is missing */
    EXPECT(srd_try(&loop.end, &wrong), ==, EINVAL);
    local_poll_nothing(loop.end.cq);
    close_loop(&loop);
}

/* ---- numbers and queues ---- */

static void numbers_of_queue_pairs_have_16_bits(const void *row)
{
    struct loop loop = open_loop(usual);
    struct ibv_qp *made[MANY];
    for (int i = 0; i < MANY; i++) {
        made[i] = srd_make_qp(loop.context, loop.end.pd, loop.end.cq, SRD_ALL_OPS, (struct srd_wishes){1, 1, 0});
        EXPECT_TRUE(made[i]);
        EXPECT(made[i]->qp_num, <, NUMBERS);
        for (int j = 0; j < i; j++)
            EXPECT(made[i]->qp_num & 0xff, !=, made[j]->qp_num & 0xff); /* libfabric finds them by these bits */
    }
    for (int i = 0; i < MANY; i++)
        EXPECT(ibv_destroy_qp(made[i]), ==, 0);
    close_loop(&loop);
}

static void fill_queue(struct loop *loop)
{
    for (uint32_t i = 0; i < SRD_SENDS; i++) {
        struct srd_wr work = work_of(loop, IBV_WR_SEND);
        work.id = 100 + i;
        srd_post(&loop->end, work);
    }
}

/* The first message waits for ever for a receive, and another one ends: its place is free. */
static void a_full_queue_is_ENOMEM_until_any_entry_is_polled(const void *row)
{
    struct loop loop = open_loop(usual);
    struct srd_end other = srd_open(loop.context);
    struct srd_wr elsewhere = srd_wr(&loop.end, &other, loop.ah, IBV_WR_SEND, 8);
    for (uint32_t i = 0; i < SRD_SENDS - 1; i++)
        srd_post(&loop.end, work_of(&loop, IBV_WR_SEND));
    srd_post_receive(&other, 3, 0, 8);
    srd_post(&loop.end, elsewhere);
    srd_expect(&other, 3, IBV_WC_SUCCESS, 0);
    EXPECT(srd_try(&loop.end, &elsewhere), ==, ENOMEM);
    srd_expect(&loop.end, 7, IBV_WC_SUCCESS, 0);
    EXPECT(srd_try(&loop.end, &elsewhere), ==, 0);
    EXPECT(srd_try(&loop.end, &elsewhere), ==, ENOMEM);
    srd_close(&other);
    close_loop(&loop);
}

/* ---- ends ---- */

static void the_error_state_flushes_all_work(const void *row)
{
    struct loop loop = open_loop(usual);
    struct srd_end other = srd_open(loop.context);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    bool seen[2 * SRD_SENDS] = {false};
    for (uint32_t i = 0; i < SRD_SENDS; i++) {
        struct srd_wr work = srd_wr(&loop.end, &other, loop.ah, i % 2 ? IBV_WR_SEND : IBV_WR_SEND_WITH_IMM, 8);
        work.id = i;
        srd_post(&loop.end, work);
        srd_post_receive(&loop.end, SRD_SENDS + i, 0, 8);
    }
    EXPECT(ibv_modify_qp(loop.end.qp, &attr, IBV_QP_STATE), ==, 0);
    for (uint32_t i = 0; i < 2 * SRD_SENDS; i++) {
        struct ibv_wc wc = local_poll(loop.end.cq);
        EXPECT(wc.status, ==, IBV_WC_WR_FLUSH_ERR);
        EXPECT(wc.vendor_err, ==, FLUSHED);
        EXPECT_TRUE(wc.wr_id < 2 * SRD_SENDS && !seen[wc.wr_id]);
        seen[wc.wr_id] = true;
    }
    local_poll_nothing(loop.end.cq);
    srd_post_receive(&other, 3, 0, 8); /* what was flushed does not arrive later */
    local_poll_nothing(other.cq);
    srd_close(&other);
    close_loop(&loop);
}

static void reset(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
    EXPECT(ibv_modify_qp(qp, &attr, IBV_QP_STATE), ==, 0);
}

static void a_queue_pair_is_used_again_after_a_reset(const void *row)
{
    struct loop loop = open_loop(usual);
    for (int i = 0; i < 5; i++) {
        pass_message(&loop);
        fill_queue(&loop); /* work under way is forgotten */
        reset(loop.end.qp);
        local_poll_nothing(loop.end.cq);
        srd_to_rts(loop.end.qp, SRD_FOR_EVER);
    }
    pass_message(&loop);
    close_loop(&loop);
}

/* It has forgotten what it got, so one message may end with an abort. REASON_PEER_FORGOT */
static void a_peer_that_was_reset_gets_messages_again(const void *row)
{
    struct loop loop = open_loop(usual);
    struct srd_end other = srd_open(loop.context);
    struct srd_wr work = srd_wr(&loop.end, &other, loop.ah, IBV_WR_SEND, 8);
    for (int i = 0; i < 5; i++) {
        srd_post_receive(&other, 3, 0, 8);
        srd_post(&loop.end, work);
        struct ibv_wc wc = local_poll(loop.end.cq);
        if (i && wc.status == IBV_WC_REM_ABORT_ERR) {
            EXPECT(wc.vendor_err, ==, ABORTED);
            local_poll_nothing(other.cq);
            srd_post(&loop.end, work);
            wc = local_poll(loop.end.cq);
        }
        EXPECT(wc.status, ==, IBV_WC_SUCCESS);
        srd_expect(&other, 3, IBV_WC_SUCCESS, 0);
        reset(other.qp);
        srd_to_rts(other.qp, SRD_FOR_EVER);
    }
    srd_close(&other);
    close_loop(&loop);
}

static void a_queue_pair_is_destroyed_with_work_under_way(const void *row)
{
    for (int i = 0; i < 20; i++) {
        struct loop loop = open_loop(usual);
        fill_queue(&loop);
        if (i % 2)
            srd_post_receive(&loop.end, 1, 64, 8);
        EXPECT(ibv_destroy_qp(loop.end.qp), ==, 0);
        loop.end.qp = NULL;
        close_loop(&loop);
    }
}

/* Messages that wait for a receive, one that waits for an answer, and READs: all end flushed, and no memory of the
 * handle is looked at after it is gone. */
static void work_of_an_address_handle_that_is_destroyed_is_flushed(const void *row)
{
    struct loop loop = open_loop(usual);
    struct srd_end other = srd_open(loop.context);
    struct ibv_ah *second = srd_handle(&loop.end);
    for (uint32_t i = 0; i < SRD_SENDS; i++) {
        struct srd_wr work = srd_wr(&loop.end, &other, i % 2 ? loop.ah : second, IBV_WR_SEND, 8);
        work.id = i;
        srd_post(&loop.end, work);
    }
    EXPECT(ibv_destroy_ah(loop.ah), ==, 0);
    loop.ah = NULL;
    for (uint32_t i = 0; i < SRD_SENDS / 2; i++) {
        struct ibv_wc wc = local_poll(loop.end.cq);
        EXPECT(wc.status, ==, IBV_WC_WR_FLUSH_ERR);
        EXPECT(wc.vendor_err, ==, FLUSHED);
        EXPECT(wc.wr_id % 2, ==, 1);
    }
    local_poll_nothing(loop.end.cq);
    EXPECT(local_state(loop.end.qp), ==, IBV_QPS_RTS);
    for (uint32_t i = 0; i < SRD_SENDS; i++)
        srd_post_receive(&other, i, 0, 8);
    for (uint32_t i = 0; i < SRD_SENDS / 2; i++) { /* the messages of the other handle arrive */
        EXPECT(local_poll(loop.end.cq).status, ==, IBV_WC_SUCCESS);
        EXPECT(local_poll(other.cq).status, ==, IBV_WC_SUCCESS);
    }
    local_poll_nothing(other.cq);
    EXPECT(ibv_destroy_ah(second), ==, 0);
    srd_close(&other);
    close_loop(&loop);
}

/* ---- options of queue pairs ---- */

static bool has_unsolicited_receives(struct ibv_context *context)
{
    struct efadv_device_attr attr;
    EXPECT(efadv_query_device(context, &attr, sizeof attr), ==, 0);
    return attr.device_caps & EFADV_DEVICE_ATTR_CAPS_UNSOLICITED_WRITE_RECV;
}

/* A queue whose iterator says so of its entries. */
static struct ibv_cq_ex *open_queue(struct ibv_context *context)
{
    struct ibv_cq_init_attr_ex attr = {.cqe = 64, .wc_flags = IBV_WC_STANDARD_FLAGS};
    struct efadv_cq_init_attr efa = {.wc_flags = EFADV_WC_EX_WITH_IS_UNSOLICITED};
    struct ibv_cq_ex *cq = efadv_create_cq(context, &attr, &efa, sizeof efa);
    EXPECT_TRUE(cq != NULL);
    return cq;
}

static void expect_entry(struct ibv_cq_ex *cq, uint64_t id, bool unsolicited)
{
    struct ibv_poll_cq_attr attr = {0};
    int error;
    PATIENTLY_WHILE((error = ibv_start_poll(cq, &attr)) == ENOENT);
    EXPECT(error, ==, 0);
    EXPECT(cq->status, ==, IBV_WC_SUCCESS);
    EXPECT(cq->wr_id, ==, id);
    EXPECT(ibv_wc_read_opcode(cq), ==, IBV_WC_RECV_RDMA_WITH_IMM);
    EXPECT(ibv_wc_read_imm_data(cq), ==, 0x01020304);
    struct efadv_cq *part = efadv_cq_from_ibv_cq_ex(cq);
    EXPECT(part->wc_is_unsolicited(part), ==, unsolicited);
    ibv_end_poll(cq);
}

/* The entry comes although no receive was ever posted (efadv_create_qp_ex(3)); a device without the capability refuses
 * the flag. */
static void a_write_with_immediate_may_take_no_receive(const void *row)
{
    const struct srd_wishes wishes = {SRD_SENDS, SRD_RECEIVES, SRD_FOR_EVER, EFADV_QP_FLAGS_UNSOLICITED_WRITE_RECV};
    struct ibv_context *context = srd_device();
    struct srd_end near = srd_open(context), target = srd_open(context);
    struct ibv_ah *ah = srd_handle(&near);
    struct srd_end *far = &target;
    bool has = has_unsolicited_receives(far->context);
    struct ibv_cq_ex *cq = has ? open_queue(far->context) : NULL;
    errno = 0;
    struct ibv_qp *qp = srd_make_qp(far->context, far->pd, cq ? ibv_cq_ex_to_cq(cq) : far->cq, SRD_ALL_OPS, wishes);
    EXPECT(qp != NULL, ==, has);
    EXPECT(errno, ==, has ? 0 : EOPNOTSUPP);
    if (qp) {
        struct ibv_ah *back = srd_handle(far);
        struct srd_wr work = srd_wr(&near, &target, ah, IBV_WR_RDMA_WRITE_WITH_IMM, 100);
        srd_to_rts(qp, SRD_FOR_EVER);
        work.qpn = qp->qp_num;
        srd_fill(near.memory, 100, 5);
        srd_post(&near, work);
        srd_expect(&near, 7, IBV_WC_SUCCESS, 0);
        expect_entry(cq, 0, true);
        EXPECT_TRUE(srd_is_filled(far->memory + SRD_BYTES / 2, 100, 5));
        EXPECT(ibv_destroy_ah(back), ==, 0);
        EXPECT(ibv_destroy_qp(qp), ==, 0);
        EXPECT(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), ==, 0);
    }
    EXPECT(ibv_destroy_ah(ah), ==, 0);
    srd_close(&target);
    srd_close(&near);
    EXPECT(ibv_close_device(context), ==, 0);
}

/* A WRITE has inline data only where the queue pair was made for it. */
static void a_write_inline_needs_its_flag(const void *row)
{
    const struct srd_wishes wishes = {SRD_SENDS, SRD_RECEIVES, SRD_FOR_EVER, EFADV_QP_FLAGS_INLINE_WRITE};
    struct ibv_context *context = srd_device();
    struct srd_end near = srd_open(context), target = srd_open(context);
    struct ibv_ah *ah = srd_handle(&near);
    struct srd_end with = srd_open_on(near.context, wishes);
    struct ibv_ah *back = srd_handle(&target), *there = srd_handle(&with);
    static const char data[] = "written inline";
    struct srd_wr work = srd_wr(&near, &target, ah, IBV_WR_RDMA_WRITE, sizeof data);
    work.from = data;
    work.flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
    EXPECT(srd_try(&near, &work), ==, EINVAL);
    work.ah = there;
    srd_post(&with, work);
    srd_expect(&with, 7, IBV_WC_SUCCESS, 0);
    EXPECT_TRUE(!memcmp(target.memory + SRD_BYTES / 2, data, sizeof data));
    EXPECT(ibv_destroy_ah(there), ==, 0);
    EXPECT(ibv_destroy_ah(back), ==, 0);
    srd_close(&with);
    EXPECT(ibv_destroy_ah(ah), ==, 0);
    srd_close(&target);
    srd_close(&near);
    EXPECT(ibv_close_device(context), ==, 0);
}

/* ---- threads and processes ---- */

struct poster {
    struct loop *loop;
    int posted, failed;
};

/* Builders of a queue pair are for one thread at a time, ibv_post_send is for all. */
static void *post_messages(void *argument)
{
    struct poster *poster = argument;
    struct ibv_sge sge = {(uintptr_t)poster->loop->end.memory, 8, poster->loop->end.mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    wr.wr.ud.ah = poster->loop->ah, wr.wr.ud.remote_qpn = poster->loop->end.qp->qp_num;
    wr.wr.ud.remote_qkey = SRD_QKEY;
    while (poster->posted < EACH && !poster->failed) {
        struct ibv_send_wr *bad;
        int error = ibv_post_send(poster->loop->end.qp, &wr, &bad);
        poster->posted += !error;
        poster->failed = error != ENOMEM ? error : 0;
        if (error)
            sched_yield();
    }
    return NULL;
}

static void eight_threads_post_to_one_queue_pair(const void *row)
{
    struct loop loop = open_loop(usual);
    struct poster posters[THREADS];
    pthread_t threads[THREADS];
    for (uint64_t i = 0; i < SRD_RECEIVES; i++)
        srd_post_receive(&loop.end, 1000, 64, 8);
    for (int i = 0; i < THREADS; i++) {
        posters[i] = (struct poster){.loop = &loop};
        EXPECT(pthread_create(&threads[i], NULL, post_messages, &posters[i]), ==, 0);
    }
    int sent = 0, received = 0;
    while (sent < THREADS * EACH || received < THREADS * EACH) {
        struct ibv_wc wc = local_poll(loop.end.cq);
        EXPECT(wc.status, ==, IBV_WC_SUCCESS);
        if (wc.opcode == IBV_WC_SEND) {
            sent++;
        } else {
            received++;
            srd_post_receive(&loop.end, 1000, 64, 8);
        }
    }
    for (int i = 0; i < THREADS; i++) {
        EXPECT(pthread_join(threads[i], NULL), ==, 0);
        EXPECT(posters[i].failed, ==, 0);
    }
    EXPECT(sent, ==, THREADS * EACH);
    EXPECT(received, ==, THREADS * EACH);
    local_poll_nothing(loop.end.cq);
    close_loop(&loop);
}

/* A thread that is cancelled leaves its frame by no return, which AddressSanitizer would find on the next use of that
 * stack. */
#define LEFT_BY_CANCELLATION __attribute__((no_sanitize("address")))

/* Posts and polls make system calls under locks, as they wake the helper. */
LEFT_BY_CANCELLATION static void *read_for_ever(void *argument)
{
    struct loop *loop = argument;
    const struct srd_wr work = work_of(loop, IBV_WR_RDMA_READ);
    struct ibv_wc wc;
    for (;; pthread_testcancel()) {
        srd_try(&loop->end, &work);
        ibv_poll_cq(loop->end.cq, 1, &wc);
    }
    return NULL;
}

/* Verbs that post and poll are no cancellation points (pthreads(7)): a thread that ended there would keep its locks. */
static void a_thread_that_is_cancelled_leaves_no_lock_behind(const void *row)
{
    enum { TIMES = 100, OWN = 70 };
    struct loop loop = open_loop(usual);
    struct srd_wr work = work_of(&loop, IBV_WR_RDMA_READ);
    struct ibv_wc wc;
    work.id = OWN;
    for (int i = 0; i < TIMES; i++) {
        pthread_t thread;
        EXPECT(pthread_create(&thread, NULL, read_for_ever, &loop), ==, 0);
        nanosleep(&(struct timespec){.tv_nsec = 50000 + 3000 * i}, NULL);
        EXPECT(pthread_cancel(thread), ==, 0);
        EXPECT(pthread_join(thread, NULL), ==, 0);
        while (srd_try(&loop.end, &work)) /* until a place is free */
            ibv_poll_cq(loop.end.cq, 1, &wc);
        do {
            wc = local_poll(loop.end.cq);
            EXPECT(wc.status, ==, IBV_WC_SUCCESS);
        } while (wc.wr_id != OWN);
    }
    close_loop(&loop);
}

#if defined(__SANITIZE_THREAD__)
enum { THREADS_IN_CHILDREN = 0 };
#else
enum { THREADS_IN_CHILDREN = 1 };
#endif

/* The child of a fork opens the device anew, and sends to its parent's queue pair; its end leaves that alone. */
static void the_child_of_a_fork_sends_to_its_parent(const void *row)
{
    int status;
    if (!THREADS_IN_CHILDREN)
        harness_skip("ThreadSanitizer lets no child start threads");
    struct loop loop = open_loop(usual);
    srd_post_receive(&loop.end, 5, 64, 8);
    pid_t child = fork();
    EXPECT(child, >=, 0);
    if (!child) {
        struct loop own = open_loop(usual);
        struct srd_wr work = work_of(&own, IBV_WR_SEND);
        pass_message(&own);
        work.qpn = loop.end.qp->qp_num;
        srd_fill(own.end.memory, 8, 90);
        srd_post(&own.end, work);
        srd_expect(&own.end, 7, IBV_WC_SUCCESS, 0);
        _exit(0);
    }
    srd_expect(&loop.end, 5, IBV_WC_SUCCESS, 0);
    EXPECT_TRUE(srd_is_filled(loop.end.memory + 64, 8, 90));
    EXPECT(waitpid(child, &status, 0), ==, child);
    EXPECT(status, ==, 0);
    pass_message(&loop);
    close_loop(&loop);
}

static void a_child_that_ends_leaves_its_parents_queue_pair_alone(const void *row)
{
    struct loop loop = open_loop(usual);
    int status;
    fill_queue(&loop);
    pid_t child = fork();
    EXPECT(child, >=, 0);
    if (!child)
        _exit(0);
    EXPECT(waitpid(child, &status, 0), ==, child);
    EXPECT(status, ==, 0);
    for (uint32_t i = 0; i < SRD_SENDS; i++)
        srd_post_receive(&loop.end, i, 64, 8);
    for (uint32_t i = 0; i < 2 * SRD_SENDS; i++)
        EXPECT(local_poll(loop.end.cq).status, ==, IBV_WC_SUCCESS);
    close_loop(&loop);
}

static void all(void)
{
    CASE(other_ways_to_make_one_are_refused);
    CASE(builders_of_other_operations_are_refused);
    CASE(builders_need_the_capability_of_the_device);
    CASE(work_that_is_unsignalled_or_ordered_is_EINVAL);
    CASE(ibv_post_send_takes_messages_alone);
    CASE(a_batch_with_a_wrong_request_leaves_no_trace);
    CASE(numbers_of_queue_pairs_have_16_bits);
    CASE(a_full_queue_is_ENOMEM_until_any_entry_is_polled);
    CASE(the_error_state_flushes_all_work);
    CASE(a_queue_pair_is_used_again_after_a_reset);
    CASE(a_peer_that_was_reset_gets_messages_again);
    CASE(a_queue_pair_is_destroyed_with_work_under_way);
    CASE(work_of_an_address_handle_that_is_destroyed_is_flushed);
    CASE(a_write_with_immediate_may_take_no_receive);
    CASE(a_write_inline_needs_its_flag);
    CASE(eight_threads_post_to_one_queue_pair);
    CASE(a_thread_that_is_cancelled_leaves_no_lock_behind);
    CASE(the_child_of_a_fork_sends_to_its_parent);
    CASE(a_child_that_ends_leaves_its_parents_queue_pair_alone);
}

int main(int argc, char **argv)
{
    if (!strcmp(argv[0], "capabilities"))
        return be_asked();
    return harness_main(argc, argv, all);
}
