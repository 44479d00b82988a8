/* Scalable reliable datagrams of an EFA in one process and two: messages, READs and WRITEs, and how each fails. Run
 * under profiles/efa.profile. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/testing/patience.h"
#include "srd_end.h"

enum {
    INVALID_LKEY = 5,
    TOO_LONG = 6,
    INVALID_RKEY = 7,
    NO_QP = 9,
    NO_RECEIVE = 10,
    TOO_SHORT = 11,
    NO_ADDRESS = 14,
};
enum { MIB = 1 << 20, NUMBERS = 1 << 16, UNKNOWN = 0xffff, NOT_THERE = 0xfff0 };

/* Two ends on one device, and a handle of the first that leads to the second. */
struct pair {
    struct ibv_context *context;
    struct srd_end near, far;
    struct ibv_ah *ah;
};

static struct pair open_pair(uint32_t rnr_retry)
{
    struct pair pair = {.context = srd_device()};
    pair.near = srd_open_on(pair.context, (struct srd_wishes){SRD_SENDS, SRD_RECEIVES, rnr_retry});
    pair.far = srd_open(pair.context);
    pair.ah = srd_handle(&pair.near);
    return pair;
}

static void close_pair(struct pair *pair)
{
    EXPECT(ibv_destroy_ah(pair->ah), ==, 0);
    srd_close(&pair->near);
    srd_close(&pair->far);
    EXPECT(ibv_close_device(pair->context), ==, 0);
}

static struct srd_wr work_of(const struct pair *pair, enum ibv_wr_opcode opcode, uint32_t length)
{
    return srd_wr(&pair->near, &pair->far, pair->ah, opcode, length);
}

/* A message passes: what failed before has left no trace. */
static void pass_message(struct pair *pair)
{
    srd_fill(pair->near.memory, 100, 3);
    srd_post_receive(&pair->far, 21, 0, 100);
    srd_post(&pair->near, work_of(pair, IBV_WR_SEND, 100));
    srd_expect(&pair->near, 7, IBV_WC_SUCCESS, 0);
    struct ibv_wc wc = srd_expect(&pair->far, 21, IBV_WC_SUCCESS, 0);
    EXPECT(wc.byte_len, ==, 100);
    EXPECT_TRUE(srd_is_filled(pair->far.memory, 100, 3));
    EXPECT(local_state(pair->near.qp), ==, IBV_QPS_RTS);
    EXPECT(local_state(pair->far.qp), ==, IBV_QPS_RTS);
}

/* The work ends like this, and both queue pairs go on. */
static void expect_failure(struct pair *pair, struct srd_wr work, enum ibv_wc_status status, uint32_t vendor)
{
    bool writes = work.opcode == IBV_WR_RDMA_WRITE || work.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    srd_post(&pair->near, work);
    struct ibv_wc wc = srd_expect(&pair->near, work.id, status, vendor);
    EXPECT(wc.opcode, ==,
           writes ? IBV_WC_RDMA_WRITE : IBV_WC_SEND); /* libfabric looks at it, other than the verbs allow */
    local_poll_nothing(pair->far.cq);
    pass_message(pair);
}

/* ---- messages ---- */

/* The payload has no GRH before it, other than in a datagram of UD. */
static void a_message_shows_who_sent_it(const void *row)
{
    struct pair pair = open_pair(SRD_FOR_EVER);
    srd_fill(pair.near.memory, 300, 1);
    srd_post_receive(&pair.far, 5, 0, 400);
    srd_post(&pair.near, work_of(&pair, IBV_WR_SEND_WITH_IMM, 300));
    struct ibv_wc sent = srd_expect(&pair.near, 7, IBV_WC_SUCCESS, 0);
    struct ibv_wc wc = srd_expect(&pair.far, 5, IBV_WC_SUCCESS, 0);
    EXPECT(sent.opcode, ==, IBV_WC_SEND);
    EXPECT(wc.opcode, ==, IBV_WC_RECV);
    EXPECT(wc.byte_len, ==, 300);
    EXPECT(wc.src_qp, ==, pair.near.qp->qp_num);
    EXPECT(wc.wc_flags, ==, IBV_WC_WITH_IMM);
    EXPECT(wc.imm_data, ==, 0x01020304);
    EXPECT(wc.slid, ==, UNKNOWN);
    EXPECT(wc.sl + wc.dlid_path_bits, ==, 0);
    EXPECT_TRUE(srd_is_filled(pair.far.memory, 300, 1));
    EXPECT(pair.far.memory[300], ==, 0);
    close_pair(&pair);
}

static void slid_is_the_number_of_the_receivers_handle(const void *row)
{
    struct pair pair = open_pair(SRD_FOR_EVER);
    struct ibv_ah_attr elsewhere = {.is_global = 1, .port_num = 1, .grh = {.dgid.raw = {0xff, 0x0e, [15] = 1}}};
    struct ibv_ah *first = ibv_create_ah(pair.far.pd, &elsewhere), *back = srd_handle(&pair.far);
    EXPECT_TRUE(first);
    EXPECT(srd_number(back), ==, 1);
    for (int i = 0; i < 2; i++) {
        srd_post_receive(&pair.far, 5, 0, 100);
        srd_post(&pair.near, work_of(&pair, IBV_WR_SEND, 0));
        srd_expect(&pair.near, 7, IBV_WC_SUCCESS, 0);
        struct ibv_wc wc = srd_expect(&pair.far, 5, IBV_WC_SUCCESS, 0);
        EXPECT(wc.slid, ==, i ? UNKNOWN : 1);
        EXPECT(wc.byte_len + wc.wc_flags, ==, 0);
        if (!i)
            EXPECT(ibv_destroy_ah(back), ==, 0);
    }
    EXPECT(ibv_destroy_ah(first), ==, 0);
    close_pair(&pair);
}

static void a_message_as_long_as_the_port_says_arrives(const void *row)
{
    struct pair pair = open_pair(SRD_FOR_EVER);
    struct ibv_port_attr port;
    EXPECT(ibv_query_port(pair.context, 1, &port), ==, 0);
    EXPECT(port.max_msg_sz, ==, SRD_LONGEST);
    srd_fill(pair.near.memory, SRD_LONGEST, 2);
    srd_post_receive(&pair.far, 5, 0, SRD_LONGEST);
    srd_post(&pair.near, work_of(&pair, IBV_WR_SEND, SRD_LONGEST));
    srd_expect(&pair.near, 7, IBV_WC_SUCCESS, 0);
    EXPECT(srd_expect(&pair.far, 5, IBV_WC_SUCCESS, 0).byte_len, ==, SRD_LONGEST);
    EXPECT_TRUE(srd_is_filled(pair.far.memory, SRD_LONGEST, 2));
    close_pair(&pair);
}

/* libfabric's first packet often comes before its peer has receives. */
static void messages_wait_for_receives(const void *row)
{
    struct pair pair = open_pair(SRD_FOR_EVER);
    bool seen[SRD_SENDS] = {false};
    for (uint32_t i = 0; i < SRD_SENDS; i++) {
        struct srd_wr work = work_of(&pair, IBV_WR_SEND, 8);
        work.id = i;
        work.from = pair.near.memory + 8 * i;
        srd_fill(pair.near.memory + 8 * i, 8, i * 16);
        srd_post(&pair.near, work);
    }
    local_poll_nothing(pair.near.cq);
    local_poll_nothing(pair.far.cq);
    for (uint32_t i = 0; i < SRD_SENDS; i++)
        srd_post_receive(&pair.far, i, 64 * i, 8);
    for (uint32_t i = 0; i < SRD_SENDS; i++) { /* in any order */
        struct ibv_wc wc = local_poll(pair.near.cq);
        EXPECT(wc.status, ==, IBV_WC_SUCCESS);
        EXPECT_TRUE(wc.wr_id < SRD_SENDS && !seen[wc.wr_id]);
        seen[wc.wr_id] = true;
        wc = local_poll(pair.far.cq);
        EXPECT(wc.status, ==, IBV_WC_SUCCESS);
        uint32_t which = pair.far.memory[64 * wc.wr_id] / 16u;
        EXPECT_TRUE(srd_is_filled(pair.far.memory + 64 * wc.wr_id, 8, which * 16));
    }
    local_poll_nothing(pair.far.cq);
    close_pair(&pair);
}

/* A message that waits for one receiver holds up none for others. */
static void a_receiver_without_receives_holds_up_no_other(const void *row)
{
    struct pair pair = open_pair(SRD_FOR_EVER);
    struct srd_end third = srd_open(pair.context);
    srd_post(&pair.near, work_of(&pair, IBV_WR_SEND, 8));
    srd_post_receive(&third, 3, 0, 8);
    struct srd_wr other = srd_wr(&pair.near, &third, pair.ah, IBV_WR_SEND, 8);
    other.id = 8;
    srd_post(&pair.near, other);
    srd_expect(&pair.near, 8, IBV_WC_SUCCESS, 0);
    srd_expect(&third, 3, IBV_WC_SUCCESS, 0);
    local_poll_nothing(pair.near.cq);
    srd_post_receive(&pair.far, 3, 0, 8);
    srd_expect(&pair.near, 7, IBV_WC_SUCCESS, 0);
    srd_close(&third);
    close_pair(&pair);
}

static void inline_data_is_copied_when_it_is_posted(const void *row)
{
    struct pair pair = open_pair(SRD_FOR_EVER);
    unsigned char text[SRD_INLINE];
    for (unsigned i = 0; i < 2; i++)
        srd_post_receive(&pair.far, i, 64 * i, SRD_INLINE);
    ibv_wr_start(pair.near.ex);
    for (unsigned i = 0; i < 2; i++) {
        struct srd_wr work = work_of(&pair, IBV_WR_SEND, SRD_INLINE);
        work.flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
        work.from = text;
        srd_fill(text, sizeof text, i * 50);
        srd_build(&pair.near, &work);
    }
    memset(text, 0, sizeof text);
    EXPECT(ibv_wr_complete(pair.near.ex), ==, 0);
    bool seen[2] = {false};
    for (unsigned i = 0; i < 2; i++) {
        srd_expect(&pair.near, 7, IBV_WC_SUCCESS, 0);
        struct ibv_wc wc = local_poll(pair.far.cq);
        EXPECT(wc.status, ==, IBV_WC_SUCCESS);
        unsigned which = pair.far.memory[64 * wc.wr_id] / 50u;
        EXPECT_TRUE(which < 2 && !seen[which]);
        EXPECT_TRUE(srd_is_filled(pair.far.memory + 64 * wc.wr_id, SRD_INLINE, which * 50));
        seen[which] = true;
    }
    close_pair(&pair);
}

/* Those that have a handle find it by its number, the others are known by their GID (efadv_create_cq(3)). */
static void an_extended_queue_shows_the_GID_of_a_stranger(const void *row)
{
    struct pair pair = open_pair(SRD_FOR_EVER);
    struct ibv_cq_init_attr_ex attr = {.cqe = 16, .wc_flags = IBV_WC_STANDARD_FLAGS};
    struct efadv_cq_init_attr efa = {.wc_flags = EFADV_WC_EX_WITH_SGID};
    struct ibv_cq_ex *cq = efadv_create_cq(pair.context, &attr, &efa, sizeof efa);
    EXPECT_TRUE(cq);
    EXPECT(ibv_destroy_qp(pair.far.qp), ==, 0);
    pair.far.qp = srd_make_qp(pair.context, pair.far.pd, ibv_cq_ex_to_cq(cq), SRD_ALL_OPS,
                              (struct srd_wishes){SRD_SENDS, SRD_RECEIVES, SRD_FOR_EVER});
    EXPECT_TRUE(pair.far.qp);
    srd_to_rts(pair.far.qp, SRD_FOR_EVER);
    struct ibv_ah *back = NULL;
    for (int known = 0; known < 2; known++) {
        union ibv_gid sgid = {.raw = {0}};
        struct ibv_poll_cq_attr poll = {0};
        srd_post_receive(&pair.far, 5, 0, 100);
        srd_post(&pair.near, work_of(&pair, IBV_WR_SEND_WITH_IMM, 64));
        srd_expect(&pair.near, 7, IBV_WC_SUCCESS, 0);
        int error;
        PATIENTLY_WHILE((error = ibv_start_poll(cq, &poll)) == ENOENT);
        EXPECT(error, ==, 0);
        EXPECT(cq->status, ==, IBV_WC_SUCCESS);
        EXPECT(cq->wr_id, ==, 5);
        EXPECT(ibv_wc_read_opcode(cq), ==, IBV_WC_RECV);
        EXPECT(ibv_wc_read_byte_len(cq), ==, 64);
        EXPECT(ibv_wc_read_imm_data(cq), ==, 0x01020304);
        EXPECT(ibv_wc_read_src_qp(cq), ==, pair.near.qp->qp_num);
        EXPECT(ibv_wc_read_wc_flags(cq), ==, IBV_WC_WITH_IMM);
        EXPECT(ibv_wc_read_vendor_err(cq), ==, 0);
        EXPECT(ibv_wc_read_slid(cq), ==, known ? 0 : UNKNOWN);
        struct efadv_cq *part = efadv_cq_from_ibv_cq_ex(cq);
        EXPECT(part->wc_read_sgid(part, &sgid), ==, known ? -ENOENT : 0);
        if (!known)
            EXPECT(memcmp(&sgid, &pair.near.gid, sizeof sgid), ==, 0);
        ibv_end_poll(cq);
        back = known ? back : srd_handle(&pair.far);
    }
    EXPECT(ibv_destroy_ah(back), ==, 0);
    EXPECT(ibv_destroy_qp(pair.far.qp), ==, 0);
    pair.far.qp = NULL;
    EXPECT(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), ==, 0);
    close_pair(&pair);
}

/* ---- messages that fail ---- */

static void without_a_receive_the_retries_end(const void *row)
{
    const uint32_t retries[] = {0, 3};
    for (size_t i = 0; i < COUNT(retries); i++) {
        struct pair pair = open_pair(retries[i]);
        expect_failure(&pair, work_of(&pair, IBV_WR_SEND, 8), IBV_WC_RNR_RETRY_EXC_ERR, NO_RECEIVE);
        expect_failure(&pair, work_of(&pair, IBV_WR_SEND_WITH_IMM, 8), IBV_WC_RNR_RETRY_EXC_ERR, NO_RECEIVE);
        struct ibv_ah *back = srd_handle(&pair.far);
        expect_failure(&pair, work_of(&pair, IBV_WR_RDMA_WRITE_WITH_IMM, 8), IBV_WC_RNR_RETRY_EXC_ERR, NO_RECEIVE);
        EXPECT(ibv_destroy_ah(back), ==, 0);
        close_pair(&pair);
    }
}

static long milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* libfabric counts on the answer, not on a timeout. REASON_PEER_NO_QP */
static void a_queue_pair_that_is_not_there_is_said_within_a_second(const void *row)
{
    struct pair pair = open_pair(SRD_FOR_EVER);
    struct srd_end gone = srd_open(pair.context);
    uint32_t numbers[] = {NOT_THERE, gone.qp->qp_num};
    EXPECT(ibv_destroy_qp(gone.qp), ==, 0);
    gone.qp = NULL;
    for (size_t i = 0; i < COUNT(numbers); i++) {
        struct srd_wr work = work_of(&pair, IBV_WR_SEND, 8);
        work.qpn = numbers[i];
        long from = milliseconds();
        srd_post(&pair.near, work);
        srd_expect(&pair.near, 7, IBV_WC_REM_INV_RD_REQ_ERR, NO_QP);
        EXPECT(milliseconds() - from, <, 1000);
    }
    pass_message(&pair);
    srd_close(&gone);
    close_pair(&pair);
}

static void a_wrong_QKey_finds_no_queue_pair(const void *row)
{
    struct pair pair = open_pair(SRD_FOR_EVER);
    struct srd_wr work = work_of(&pair, IBV_WR_SEND, 8);
    work.qkey ^= 1;
    srd_post_receive(&pair.far, 21, 0, 100);
    srd_post(&pair.near, work);
    srd_expect(&pair.near, 7, IBV_WC_REM_INV_RD_REQ_ERR, NO_QP);
    local_poll_nothing(pair.far.cq);
    srd_post(&pair.near, work_of(&pair, IBV_WR_SEND, 8));
    srd_expect(&pair.near, 7, IBV_WC_SUCCESS, 0);
    srd_expect(&pair.far, 21, IBV_WC_SUCCESS, 0);
    close_pair(&pair);
}

static void a_receive_that_is_too_short_stays(const void *row)
{
    struct pair pair = open_pair(SRD_FOR_EVER);
    srd_post_receive(&pair.far, 5, 0, 60);
    srd_post(&pair.near, work_of(&pair, IBV_WR_SEND, 61));
    srd_expect(&pair.near, 7, IBV_WC_REM_INV_REQ_ERR, TOO_SHORT);
    local_poll_nothing(pair.far.cq);
    srd_post(&pair.near, work_of(&pair, IBV_WR_SEND, 60));
    srd_expect(&pair.near, 7, IBV_WC_SUCCESS, 0);
    EXPECT(srd_expect(&pair.far, 5, IBV_WC_SUCCESS, 0).byte_len, ==, 60);
    pass_message(&pair);
    close_pair(&pair);
}

static void more_than_the_device_sends_is_a_length_error(const void *row)
{
    struct pair pair = open_pair(SRD_FOR_EVER);
    struct ibv_ah *back = srd_handle(&pair.far);
    expect_failure(&pair, work_of(&pair, IBV_WR_SEND, SRD_LONGEST + 1), IBV_WC_LOC_LEN_ERR, TOO_LONG);
    expect_failure(&pair, work_of(&pair, IBV_WR_RDMA_READ, (1 << 30) + 1), IBV_WC_LOC_LEN_ERR, TOO_LONG);
    expect_failure(&pair, work_of(&pair, IBV_WR_RDMA_WRITE, (1 << 30) + 1), IBV_WC_LOC_LEN_ERR, TOO_LONG);
    EXPECT(ibv_destroy_ah(back), ==, 0);
    close_pair(&pair);
}

static void a_key_of_no_own_region_is_a_protection_error(const void *row)
{
    const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};
    struct pair pair = open_pair(SRD_FOR_EVER);
    struct ibv_ah *back = srd_handle(&pair.far);
    for (size_t i = 0; i < COUNT(opcodes); i++) {
        struct srd_wr work = work_of(&pair, opcodes[i], 8);
        work.lkey ^= 0x100;
        expect_failure(&pair, work, IBV_WC_LOC_PROT_ERR, INVALID_LKEY);
        work = work_of(&pair, opcodes[i], 8);
        work.from = pair.near.memory + SRD_BYTES - 7; /* one byte beyond the region */
        expect_failure(&pair, work, IBV_WC_LOC_PROT_ERR, INVALID_LKEY);
    }
    EXPECT(ibv_destroy_ah(back), ==, 0);
    close_pair(&pair);
}

/* ---- READs and WRITEs ---- */

static void a_megabyte_is_read_and_written(const void *row)
{
    struct pair pair = open_pair(SRD_FOR_EVER);
    struct ibv_ah *back = srd_handle(&pair.far);
    srd_fill(pair.far.memory + MIB, MIB, 9);
    srd_post(&pair.near, work_of(&pair, IBV_WR_RDMA_READ, MIB));
    EXPECT(srd_expect(&pair.near, 7, IBV_WC_SUCCESS, 0).opcode, ==, IBV_WC_SEND); /* as of rdma-core's library */
    EXPECT_TRUE(srd_is_filled(pair.near.memory, MIB, 9));
    EXPECT(pair.near.memory[MIB], ==, 0);
    srd_fill(pair.near.memory, MIB, 77);
    srd_post(&pair.near, work_of(&pair, IBV_WR_RDMA_WRITE, MIB));
    EXPECT(srd_expect(&pair.near, 7, IBV_WC_SUCCESS, 0).opcode, ==, IBV_WC_RDMA_WRITE);
    EXPECT_TRUE(srd_is_filled(pair.far.memory + MIB, MIB, 77)); /* a completion says that it is there */
    EXPECT(pair.far.memory[MIB - 1], ==, 0);
    local_poll_nothing(pair.far.cq);
    EXPECT(ibv_destroy_ah(back), ==, 0);
    close_pair(&pair);
}

static void a_write_with_immediate_takes_a_receive(const void *row)
{
    const uint32_t lengths[] = {0, 8, 8928, 100000};
    struct pair pair = open_pair(SRD_FOR_EVER);
    struct ibv_ah *back = srd_handle(&pair.far);
    for (size_t i = 0; i < COUNT(lengths); i++) {
        srd_fill(pair.near.memory, lengths[i], (unsigned)i);
        srd_post_receive(&pair.far, 5, 0, 8);
        srd_post(&pair.near, work_of(&pair, IBV_WR_RDMA_WRITE_WITH_IMM, lengths[i]));
        EXPECT(srd_expect(&pair.near, 7, IBV_WC_SUCCESS, 0).opcode, ==, IBV_WC_RDMA_WRITE);
        struct ibv_wc wc = srd_expect(&pair.far, 5, IBV_WC_SUCCESS, 0);
        EXPECT(wc.opcode, ==, IBV_WC_RECV_RDMA_WITH_IMM);
        EXPECT(wc.byte_len, ==, lengths[i]);
        EXPECT(wc.wc_flags, ==, IBV_WC_WITH_IMM);
        EXPECT(wc.imm_data, ==, 0x01020304);
        EXPECT(wc.src_qp, ==, pair.near.qp->qp_num);
        EXPECT_TRUE(srd_is_filled(pair.far.memory + MIB, lengths[i], (unsigned)i));
        EXPECT_TRUE(!memcmp(pair.far.memory, "\0\0\0\0\0\0\0\0", 8)); /* the receive's memory gets nothing */
    }
    EXPECT(ibv_destroy_ah(back), ==, 0);
    close_pair(&pair);
}

static void a_key_of_no_remote_region_is_an_access_error(const void *row)
{
    const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE};
    struct pair pair = open_pair(SRD_FOR_EVER);
    struct ibv_ah *back = srd_handle(&pair.far);
    for (size_t i = 0; i < COUNT(opcodes); i++) {
        struct srd_wr unknown = work_of(&pair, opcodes[i], 8), beyond = unknown, foreign = unknown;
        unknown.rkey ^= 0x100;
        beyond.remote = (uintptr_t)pair.far.memory + SRD_BYTES - 7;
        foreign.rkey = pair.near.mr->rkey; /* the queue pair has another domain */
        foreign.remote = (uintptr_t)pair.near.memory;
        expect_failure(&pair, unknown, IBV_WC_REM_ACCESS_ERR, INVALID_RKEY);
        expect_failure(&pair, beyond, IBV_WC_REM_ACCESS_ERR, INVALID_RKEY);
        expect_failure(&pair, foreign, IBV_WC_REM_ACCESS_ERR, INVALID_RKEY);
    }
    EXPECT(ibv_destroy_ah(back), ==, 0);
    close_pair(&pair);
}

static void a_region_grants_what_it_was_registered_for(const void *row)
{
    struct pair pair = open_pair(SRD_FOR_EVER);
    struct ibv_ah *back = srd_handle(&pair.far);
    const struct {
        enum ibv_wr_opcode opcode;
        int other; /* the right that does not help */
    } rows[] = {{IBV_WR_RDMA_READ, IBV_ACCESS_REMOTE_WRITE}, {IBV_WR_RDMA_WRITE, IBV_ACCESS_REMOTE_READ}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct ibv_mr *mr = ibv_reg_mr(pair.far.pd, pair.far.memory, SRD_BYTES, IBV_ACCESS_LOCAL_WRITE | rows[i].other);
        EXPECT_TRUE(mr);
        struct srd_wr work = work_of(&pair, rows[i].opcode, 8);
        work.rkey = mr->rkey;
        expect_failure(&pair, work, IBV_WC_REM_ACCESS_ERR, INVALID_RKEY);
        EXPECT(ibv_dereg_mr(mr), ==, 0);
    }
    EXPECT(ibv_destroy_ah(back), ==, 0);
    close_pair(&pair);
}

/* RDMA is between queue pairs whose domains know each other (libfabric's page of EFA); a SEND needs no such
 * thing. REASON_PEER_NO_ADDRESS */
static void the_target_must_have_a_handle_for_the_requester(const void *row)
{
    struct pair pair = open_pair(SRD_FOR_EVER);
    struct ibv_context *context = srd_device();
    struct srd_end other = srd_open(context);
    struct srd_end *targets[] = {&pair.far, &other};
    for (size_t i = 0; i < COUNT(targets); i++) {
        struct srd_wr read = srd_wr(&pair.near, targets[i], pair.ah, IBV_WR_RDMA_READ, 8), write = read;
        write.opcode = IBV_WR_RDMA_WRITE;
        srd_post(&pair.near, read);
        srd_expect(&pair.near, 7, IBV_WC_REM_OP_ERR, NO_ADDRESS);
        srd_post(&pair.near, write);
        srd_expect(&pair.near, 7, IBV_WC_REM_OP_ERR, NO_ADDRESS);
        struct ibv_ah *back = srd_handle(targets[i]);
        srd_post(&pair.near, read);
        srd_expect(&pair.near, 7, IBV_WC_SUCCESS, 0);
        EXPECT(ibv_destroy_ah(back), ==, 0);
        srd_post(&pair.near, read);
        srd_expect(&pair.near, 7, IBV_WC_REM_OP_ERR, NO_ADDRESS);
    }
    pass_message(&pair);
    srd_close(&other);
    EXPECT(ibv_close_device(context), ==, 0);
    close_pair(&pair);
}

/* libfabric copies within its own memory like this. */
static void a_queue_pair_reads_its_own_memory(const void *row)
{
    struct ibv_context *context = srd_device();
    struct srd_end end = srd_open(context);
    struct ibv_ah *ah = srd_handle(&end);
    srd_fill(end.memory + MIB, 5000, 4);
    srd_post(&end, srd_wr(&end, &end, ah, IBV_WR_RDMA_READ, 5000));
    srd_expect(&end, 7, IBV_WC_SUCCESS, 0);
    EXPECT_TRUE(srd_is_filled(end.memory, 5000, 4));
    EXPECT(ibv_destroy_ah(ah), ==, 0);
    srd_close(&end);
    EXPECT(ibv_close_device(context), ==, 0);
}

/* ---- another process ---- */

/* The end of the other process, as it says itself. */
struct introduction {
    uint32_t qpn, rkey;
    uint64_t remote;
};

/* The other process: says what it has, and makes a handle when it is asked; two messages then arrive. */
static int be_far(int channel)
{
    char word;
    struct ibv_context *context = srd_device();
    struct srd_end end = srd_open(context);
    struct introduction self = {end.qp->qp_num, end.mr->rkey, (uintptr_t)end.memory + MIB};
    srd_fill(end.memory + MIB, MIB, 5);
    bool said = write(channel, &self, sizeof self) == sizeof self && read(channel, &word, 1) == 1;
    struct ibv_ah *ah = srd_handle(&end);
    srd_post_receive(&end, 1, 0, 100);
    srd_post_receive(&end, 1, 0, 100);
    said = said && write(channel, "a", 1) == 1;
    struct ibv_wc message = srd_expect(&end, 1, IBV_WC_SUCCESS, 0);
    struct ibv_wc written = srd_expect(&end, 1, IBV_WC_SUCCESS, 0);
    bool right = said && message.byte_len == 100 && message.slid == srd_number(ah) && written.byte_len == MIB &&
                 srd_is_filled(end.memory, 100, 60) && srd_is_filled(end.memory + MIB, MIB, 60);
    srd_post(&end, (struct srd_wr){.opcode = IBV_WR_SEND,
                                   .ah = ah,
                                   .qpn = message.src_qp,
                                   .qkey = SRD_QKEY,
                                   .from = end.memory,
                                   .length = 10,
                                   .lkey = end.mr->lkey});
    srd_expect(&end, 0, IBV_WC_SUCCESS, 0);
    EXPECT(ibv_destroy_ah(ah), ==, 0);
    srd_close(&end);
    return ibv_close_device(context) || !right;
}

static pid_t begin_far(int *channel)
{
    int ends[2];
    char number[16];
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), ==, 0);
    snprintf(number, sizeof number, "%d", ends[1]);
    pid_t child = fork();
    EXPECT(child, >=, 0);
    if (!child) {
        execl("/proc/self/exe", "far", number, NULL);
        _exit(2);
    }
    close(ends[1]);
    *channel = ends[0];
    return child;
}

static void processes_send_read_and_write(const void *row)
{
    int channel, status;
    char word;
    struct introduction far;
    pid_t child = begin_far(&channel);
    struct ibv_context *context = srd_device();
    struct srd_end end = srd_open(context);
    struct ibv_ah *ah = srd_handle(&end);
    EXPECT(recv(channel, &far, sizeof far, MSG_WAITALL), ==, sizeof far);
    struct srd_wr work = srd_wr(&end, &end, ah, IBV_WR_RDMA_READ, MIB);
    work.qpn = far.qpn, work.rkey = far.rkey, work.remote = far.remote;
    srd_post(&end, work);
    srd_expect(&end, 7, IBV_WC_REM_OP_ERR, NO_ADDRESS);
    EXPECT(write(channel, "a", 1), ==, 1);
    EXPECT(read(channel, &word, 1), ==, 1);
    srd_post(&end, work);
    srd_expect(&end, 7, IBV_WC_SUCCESS, 0);
    EXPECT_TRUE(srd_is_filled(end.memory, MIB, 5));
    srd_fill(end.memory, MIB, 60);
    work.length = 100, work.opcode = IBV_WR_SEND;
    srd_post_receive(&end, 2, MIB, 10);
    srd_post(&end, work);
    srd_expect(&end, 7, IBV_WC_SUCCESS, 0);
    work.length = MIB, work.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    srd_post(&end, work);
    srd_expect(&end, 7, IBV_WC_SUCCESS, 0);
    EXPECT(srd_expect(&end, 2, IBV_WC_SUCCESS, 0).byte_len, ==, 10);
    EXPECT(waitpid(child, &status, 0), ==, child);
    EXPECT(status, ==, 0);
    work.length = 8, work.opcode = IBV_WR_SEND;
    srd_post(&end, work); /* the process has ended */
    srd_expect(&end, 7, IBV_WC_REM_INV_RD_REQ_ERR, NO_QP);
    close(channel);
    EXPECT(ibv_destroy_ah(ah), ==, 0);
    srd_close(&end);
    EXPECT(ibv_close_device(context), ==, 0);
}

/* Messages that wait for a receive of a process, and READs of its memory, end when it is killed. */
static void work_for_a_process_that_is_killed_ends(const void *row)
{
    int channel, status;
    struct introduction far;
    pid_t child = begin_far(&channel);
    struct ibv_context *context = srd_device();
    struct srd_end end = srd_open(context);
    struct ibv_ah *ah = srd_handle(&end);
    EXPECT(recv(channel, &far, sizeof far, MSG_WAITALL), ==, sizeof far);
    struct srd_wr work = srd_wr(&end, &end, ah, IBV_WR_SEND, 100);
    work.qpn = far.qpn;
    for (int i = 0; i < 4; i++)
        srd_post(&end, work);
    local_poll_nothing(end.cq);
    EXPECT(kill(child, SIGKILL), ==, 0);
    EXPECT(waitpid(child, &status, 0), ==, child);
    work.opcode = IBV_WR_RDMA_READ, work.rkey = far.rkey, work.remote = far.remote;
    for (int i = 0; i < 4; i++)
        srd_post(&end, work);
    for (int i = 0; i < 8; i++)
        srd_expect(&end, 7, IBV_WC_REM_INV_RD_REQ_ERR, NO_QP);
    EXPECT(local_state(end.qp), ==, IBV_QPS_RTS);
    close(channel);
    EXPECT(ibv_destroy_ah(ah), ==, 0);
    srd_close(&end);
    EXPECT(ibv_close_device(context), ==, 0);
}

static void all(void)
{
    CASE(a_message_shows_who_sent_it);
    CASE(slid_is_the_number_of_the_receivers_handle);
    CASE(a_message_as_long_as_the_port_says_arrives);
    CASE(messages_wait_for_receives);
    CASE(a_receiver_without_receives_holds_up_no_other);
    CASE(inline_data_is_copied_when_it_is_posted);
    CASE(an_extended_queue_shows_the_GID_of_a_stranger);
    CASE(without_a_receive_the_retries_end);
    CASE(a_queue_pair_that_is_not_there_is_said_within_a_second);
    CASE(a_wrong_QKey_finds_no_queue_pair);
    CASE(a_receive_that_is_too_short_stays);
    CASE(more_than_the_device_sends_is_a_length_error);
    CASE(a_key_of_no_own_region_is_a_protection_error);
    CASE(a_megabyte_is_read_and_written);
    CASE(a_write_with_immediate_takes_a_receive);
    CASE(a_key_of_no_remote_region_is_an_access_error);
    CASE(a_region_grants_what_it_was_registered_for);
    CASE(the_target_must_have_a_handle_for_the_requester);
    CASE(a_queue_pair_reads_its_own_memory);
    CASE(work_for_a_process_that_is_killed_ends);
    CASE(processes_send_read_and_write); /* after it: processes that begin remove what a killed one has left */
}

int main(int argc, char **argv)
{
    if (!strcmp(argv[0], "far"))
        return be_far(atoi(argv[1]));
    return harness_main(argc, argv, all);
}
