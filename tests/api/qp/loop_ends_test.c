/* Ends of work that a rule of a script or the adverse adapter decides, and what the log has of those that fail: with a
 * queue pair that is connected with itself. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "local_fixture.h"

enum { SIZE = 64, RULED = 7, VENDOR = 9 };

static struct ibv_sge element(const struct fixture *fixture, uint32_t length)
{
    return (struct ibv_sge){.addr = (uintptr_t)fixture->memory, .length = length, .lkey = fixture->mr->lkey};
}

static void post_receive(const struct fixture *fixture, struct ibv_qp *qp, uint64_t id, uint32_t length)
{
    struct ibv_sge sge = element(fixture, length);
    struct ibv_recv_wr *bad, wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1};
    EXPECT(ibv_post_recv(qp, &wr, &bad), ==, 0);
}

static void post(struct ibv_qp *qp, struct ibv_send_wr wr, struct ibv_sge sge)
{
    struct ibv_send_wr *bad;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.send_flags = IBV_SEND_SIGNALED;
    EXPECT(ibv_post_send(qp, &wr, &bad), ==, 0);
}

/* The next completion of a receive, or of a send. */
static struct ibv_wc poll_for(const struct fixture *fixture, bool receive)
{
    for (;;) {
        struct ibv_wc wc = local_poll(fixture->cq);
        if ((wc.wr_id != 0) == receive)
            return wc;
    }
}

/* A send has wr_id 0. */
static struct ibv_wc send_into(const struct fixture *fixture, struct ibv_qp *qp, uint64_t id, uint32_t room)
{
    post_receive(fixture, qp, id, room);
    post(qp, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, element(fixture, SIZE));
    return poll_for(fixture, true);
}

static void a_receive_ends_as_a_rule_says(const void *row)
{
    struct fixture fixture = fixture_open();
    struct ibv_qp *qp = local_loop(fixture.pd, fixture.cq);
    struct ibv_wc wc = send_into(&fixture, qp, RULED, SIZE);
    EXPECT(wc.status, ==, IBV_WC_REM_OP_ERR);
    EXPECT(wc.vendor_err, ==, VENDOR);
    fixture_close(&fixture);
}

/* All 16 draw 0 once in 2^512 times. */
static void a_receive_without_an_immediate_may_have_any(const void *row)
{
    struct fixture fixture = fixture_open();
    struct ibv_qp *qp = local_loop(fixture.pd, fixture.cq);
    uint32_t drawn = 0;
    for (int i = 0; i < 16; i++) {
        struct ibv_wc wc = send_into(&fixture, qp, 1, SIZE);
        EXPECT(wc.status, ==, IBV_WC_SUCCESS);
        EXPECT(wc.wc_flags & IBV_WC_WITH_IMM, ==, 0);
        drawn |= wc.imm_data;
    }
    EXPECT(drawn, !=, 0);
    fixture_close(&fixture);
}

/* How many lines of the log end with this; lines of stories do not count. */
static unsigned count_lines(const char *end)
{
    char line[1024];
    unsigned count = 0;
    FILE *log = fopen(getenv("SOFTVERBS_LOG_FILE"), "r");
    EXPECT_TRUE(log);
    while (fgets(line, sizeof line, log)) {
        size_t length = strlen(line), tail = strlen(end);
        count += length > tail && !strstr(line, " story: ") && !memcmp(line + length - tail - 1, end, tail);
    }
    fclose(log);
    return count;
}

static bool log_has(const char *words)
{
    static char text[1 << 16];
    FILE *log = fopen(getenv("SOFTVERBS_LOG_FILE"), "r");
    EXPECT_TRUE(log);
    text[fread(text, 1, sizeof text - 1, log)] = 0;
    fclose(log);
    return strstr(text, words);
}

/* A completion can be polled while the thread that adds it still writes the lines of its end, under the queue pair's
 * lock. A query takes this lock. */
static void let_lines_end(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    EXPECT(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), ==, 0);
}

/* The line of the receive's end has the numbers, and there is no other of the packet. */
static void a_receive_that_is_too_short_has_one_line(const void *row)
{
    struct fixture fixture = fixture_open();
    struct ibv_qp *qp = local_loop(fixture.pd, fixture.cq);
    EXPECT(send_into(&fixture, qp, 1, SIZE / 2).status, ==, IBV_WC_LOC_LEN_ERR);
    let_lines_end(qp);
    EXPECT(count_lines(" (reason 200)"), ==, 1);
    fixture_close(&fixture);
}

static struct ibv_wc write_by_key(const struct fixture *fixture, struct ibv_qp *qp, uint32_t rkey)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};
    wr.wr.rdma.rkey = rkey;
    wr.wr.rdma.remote_addr = (uintptr_t)fixture->memory;
    post(qp, wr, element(fixture, SIZE));
    return poll_for(fixture, false);
}

static void a_window_that_was_invalidated_gives_no_access(const void *row)
{
    struct fixture fixture = fixture_open();
    struct ibv_qp *qp = local_loop(fixture.pd, fixture.cq);
    struct ibv_mw *mw = ibv_alloc_mw(fixture.pd, IBV_MW_TYPE_2);
    struct ibv_mr *mr = ibv_reg_mr(fixture.pd, fixture.memory, SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    EXPECT_TRUE(mw && mr);
    struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW};
    wr.bind_mw.mw = mw;
    wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
    wr.bind_mw.bind_info = (struct ibv_mw_bind_info){
        .mr = mr, .addr = (uintptr_t)fixture.memory, .length = SIZE, .mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
    post(qp, wr, element(&fixture, 0));
    EXPECT(poll_for(&fixture, false).status, ==, IBV_WC_SUCCESS);
    EXPECT(write_by_key(&fixture, qp, wr.bind_mw.rkey).status, ==, IBV_WC_SUCCESS);
    struct ibv_send_wr invalidate = {.opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = wr.bind_mw.rkey};
    post(qp, invalidate, element(&fixture, 0));
    EXPECT(poll_for(&fixture, false).status, ==, IBV_WC_SUCCESS);
    EXPECT(write_by_key(&fixture, qp, wr.bind_mw.rkey).status, !=, IBV_WC_SUCCESS);
    let_lines_end(qp);
    EXPECT_TRUE(log_has(" story: that key is of a region of 0 bytes at ") && log_has(" with no access\n"));
    fixture_close(&fixture);
}

static void all(void)
{
    CASE(a_receive_ends_as_a_rule_says);
    CASE(a_receive_without_an_immediate_may_have_any);
    CASE(a_receive_that_is_too_short_has_one_line);
    CASE(a_window_that_was_invalidated_gives_no_access);
}

/* The library reads the variables when it is loaded. */
static void begin_anew(char **argv)
{
    static char path[] = "/tmp/softverbs-loop-XXXXXX";
    close(mkstemp(path));
    setenv("SOFTVERBS_LOG", "info", 1);
    setenv("SOFTVERBS_LOG_FILE", path, 1);
    setenv("SOFTVERBS_INJECT", "when receive, wr_id 7: complete REM_OP_ERR, vendor 9", 1);
    setenv("SOFTVERBS_ADVERSE", "seed=1,only=unsaid", 1);
    execv("/proc/self/exe", argv);
    perror("execv");
}

int main(int argc, char **argv)
{
    if (!getenv("SOFTVERBS_INJECT"))
        begin_anew(argv);
    int status = harness_main(argc, argv, all);
    unlink(getenv("SOFTVERBS_LOG_FILE"));
    return status;
}
