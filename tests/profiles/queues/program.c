/* A program of queues in memory, for tests of what is around work: traces, scripts, captures, the checker, `why`.
 *
 * Usage: program WORD
 *   send        sends three messages from one queue pair to another, and prints how each ended
 *   key         writes with a wrong key
 *   stuck       sends without a receive, and waits until standard input ends
 *   minute      rings doorbells for a minute, at random instants */
#include <arpa/inet.h>
#include <infiniband/mlx5dv.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "driver.h"
#include "one_process.h"

#define VENDOR(answer, type, name, parameters, arguments) type name parameters;
#define PART(type, name, parameters, arguments) type name parameters;
#include "calls/mlx5.def"

enum { BYTES = 4096, SENDS = 16 };

static struct {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_mr *mr;
    char *memory;
    struct entries sent, received;
    struct driver driver, far;
} it;

static void to_rts(struct ibv_qp *qp, const struct ibv_qp *peer)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
    EXPECT(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), ==, 0);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                                .path_mtu = IBV_MTU_1024,
                                .dest_qp_num = peer->qp_num,
                                .max_dest_rd_atomic = 1,
                                .min_rnr_timer = 12,
                                .ah_attr = {.is_global = 1, .port_num = 1}};
    EXPECT(ibv_query_gid(it.context, 1, 0, &attr.ah_attr.grh.dgid), ==, 0);
    EXPECT(ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
           ==, 0);
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
    EXPECT(ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                             IBV_QP_MAX_QP_RD_ATOMIC),
           ==, 0);
}

static void make(void)
{
    struct ibv_device **devices = ibv_get_device_list(NULL);
    it.context = ibv_open_device(devices[0]);
    EXPECT_TRUE(it.context);
    it.pd = ibv_alloc_pd(it.context);
    it.memory = calloc(1, BYTES);
    it.mr = ibv_reg_mr(it.pd, it.memory, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    entries_open(&it.sent, ibv_create_cq(it.context, 64, NULL, NULL, 0));
    entries_open(&it.received, ibv_create_cq(it.context, 64, NULL, NULL, 0));
    struct ibv_qp_init_attr attr = {
        .send_cq = it.sent.cq,
        .recv_cq = it.received.cq,
        .cap = {.max_send_wr = SENDS, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 64},
        .qp_type = IBV_QPT_RC};
    struct ibv_qp *near = ibv_create_qp(it.pd, &attr), *far = ibv_create_qp(it.pd, &attr);
    EXPECT_TRUE(near && far);
    to_rts(near, far);
    to_rts(far, near);
    driver_open(&it.driver, near);
    driver_open(&it.far, far);
}

static void receive(void)
{
    driver_receive(&it.far, it.memory + BYTES / 2, BYTES / 2, it.mr->lkey);
}

static void begin_send(void)
{
    driver_begin(&it.driver, SEND, SIGNALLED, 0);
    driver_inline(&it.driver, "a message", 9);
}

static void ring(void)
{
    driver_end(&it.driver);
    driver_ring(&it.driver);
}

static void print_end(void)
{
    struct entry entry = entries_next(&it.sent);
    printf("work %u: opcode %u, syndrome 0x%x\n", entry.counter, entry.opcode, entry.syndrome);
    fflush(stdout);
}

static void send_three(void)
{
    for (unsigned i = 0; i < 3; i++) {
        receive();
        begin_send();
        ring();
        print_end();
    }
}

static void write_with_a_wrong_key(void)
{
    driver_begin(&it.driver, WRITE, SIGNALLED, 0);
    driver_remote(&it.driver, (uint64_t)(uintptr_t)it.memory, it.mr->rkey ^ 0x100);
    driver_inline(&it.driver, "a message", 9);
    ring();
    print_end();
}

static void wait_for_a_receive(void)
{
    char byte;
    begin_send();
    ring();
    printf("waits\n");
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
}

/* Rings at random instants, most of them about when the helper falls asleep: 2 ms after work. Each doorbell must be
 * obeyed. */
static void ring_again_and_again(void)
{
    enum { MOST = 50, ABOUT = 1900, SPAN = 400 }; /* microseconds */
    unsigned seed = (unsigned)getpid();
    unsigned long count = 0;
    for (time_t end = time(NULL) + 60; time(NULL) < end; count++) {
        driver_begin(&it.driver, NOP, SIGNALLED, 0);
        ring();
        entries_next(&it.sent);
        usleep((unsigned)rand_r(&seed) % (count % 4 ? SPAN : MOST) + (count % 4 ? ABOUT : 0)); /* by chance */
    }
    printf("%lu doorbells, none lost\n", count);
}

static const struct {
    const char *word;
    void (*run)(void);
} words[] = {{"send", send_three},
             {"key", write_with_a_wrong_key},
             {"stuck", wait_for_a_receive},
             {"minute", ring_again_and_again}};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 2 && i < sizeof words / sizeof *words; i++)
        if (!strcmp(words[i].word, argv[1])) {
            make();
            words[i].run();
            return 0;
        }
    fprintf(stderr, "usage: %s send|key|stuck|minute\n", argv[0]);
    return 2;
}
