/* Two processes with a queue pair of SRD each, and messages between them that fail: srd_stories CAUSE. It prints the
 * numbers of the client's process and queue pair, then the server's, when all messages have ended, and ends with its
 * input. The text of `softverbs why --qp` for each cause is in why/srd_story_test.py. */
#include <infiniband/efadv.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define VENDOR(answer, type, name, parameters, arguments) type name parameters;
#include "calls/efa.def"

enum { QKEY = 0x11111111, ROOM = 64, MEMORY = 1 << 14, LONGEST = 8928, NOBODY = 0x7fff, FOR_EVER = 7 };

/* The step of the server before a message. */
enum order { NOTHING, RECEIVE, RECEIVE_SHORT, RECEIVE_WITH_ANOTHER_KEY, MAKE_ADDRESS, FAIL, BEGIN_ANEW };

/* The fault of a message. */
enum fault { FINE, OTHER_QKEY, NO_QP, OTHER_LKEY, NO_ADDRESS_LEFT, HANGS };

struct step {
    enum order order;
    enum ibv_wr_opcode opcode;
    unsigned length; /* 0: no message */
    enum fault fault;
};

enum { STEPS = 10 };

static const struct cause {
    const char *name;
    uint8_t rnr_retry;
    struct step steps[STEPS];
} causes[] = {
    {"refused",
     1,
     {{NOTHING, IBV_WR_SEND, 8},
      {RECEIVE_WITH_ANOTHER_KEY, IBV_WR_SEND, 16},
      {RECEIVE_SHORT, IBV_WR_SEND, 48},
      {NOTHING, IBV_WR_SEND, 8, OTHER_QKEY},
      {NOTHING, IBV_WR_SEND, 8, OTHER_QKEY},
      {NOTHING, IBV_WR_RDMA_READ, 8},
      {MAKE_ADDRESS, IBV_WR_RDMA_READ, ROOM + 1},
      {NOTHING, IBV_WR_RDMA_WRITE, 8},
      {NOTHING, IBV_WR_SEND, 8, NO_QP}}},
    {"local",
     FOR_EVER,
     {{NOTHING, IBV_WR_SEND, 8, OTHER_LKEY},
      {NOTHING, IBV_WR_SEND, LONGEST + 1},
      {NOTHING, IBV_WR_SEND, 8, NO_ADDRESS_LEFT}}},
    {"failed", 1, {{RECEIVE, IBV_WR_SEND, 8}, {FAIL, IBV_WR_SEND, 8}}},
    {"forgotten", 1, {{RECEIVE, IBV_WR_SEND, 8}, {BEGIN_ANEW, IBV_WR_SEND, 8}}},
    {"silent", 1, {{RECEIVE, IBV_WR_SEND, 8}}},
    {"hang", FOR_EVER, {{NOTHING, IBV_WR_SEND, 8, HANGS}, {NOTHING, IBV_WR_SEND, 8, HANGS}}},
};

/* The memory that both processes share. */
static struct meeting {
    unsigned qp, rkey;
    unsigned long memory;
} * meeting;

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_qp *qp;
static struct ibv_ah *ah;
static char memory[MEMORY];
static int line; /* to the other process */

static void need(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "srd_stories: %s\n", what);
    exit(2);
}

static void run_qp(uint8_t rnr_retry)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY, .rnr_retry = rnr_retry};
    need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY), "no INIT");
    attr.qp_state = IBV_QPS_RTR;
    need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE), "no RTR");
    attr.qp_state = IBV_QPS_RTS;
    need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_RNR_RETRY), "no RTS");
}

static void move(enum ibv_qp_state state)
{
    need(!ibv_modify_qp(qp, &(struct ibv_qp_attr){.qp_state = state}, IBV_QP_STATE), "not moved");
}

static void make_ah(void)
{
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
    need(!ibv_query_gid(context, 1, 0, &attr.grh.dgid), "no GID");
    ah = ibv_create_ah(pd, &attr);
    need(ah, "no address handle");
}

static void open_all(unsigned room, unsigned access, uint8_t rnr_retry)
{
    const uint64_t operations = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_RDMA_WRITE;
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct efadv_qp_init_attr efa = {.driver_qp_type = EFADV_QP_DRIVER_TYPE_SRD};
    context = list && *list ? ibv_open_device(*list) : NULL;
    need(context && (pd = ibv_alloc_pd(context)) && (cq = ibv_create_cq(context, 64, NULL, NULL, 0)), "no device");
    mr = ibv_reg_mr(pd, memory, room, (int)access);
    need(mr, "no region");
    struct ibv_qp_init_attr_ex init = {.send_cq = cq,
                                       .recv_cq = cq,
                                       .cap = {16, 16, 1, 1, 0},
                                       .qp_type = IBV_QPT_DRIVER,
                                       .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                       .pd = pd,
                                       .send_ops_flags = operations};
    qp = efadv_create_qp_ex(context, &init, &efa, sizeof efa);
    need(qp, "no queue pair");
    run_qp(rnr_retry);
}

static struct ibv_wc wait_for_completion(void)
{
    struct ibv_wc wc;
    int count;
    while (!(count = ibv_poll_cq(cq, 1, &wc)))
        usleep(100);
    need(count == 1, "no completion");
    return wc;
}

/* --- the server */

static void post_receive(unsigned length, unsigned key)
{
    struct ibv_sge sge = {(uintptr_t)memory, length, mr->lkey + key};
    struct ibv_recv_wr *bad, wr = {.wr_id = 5, .sg_list = &sge, .num_sge = 1};
    need(!ibv_post_recv(qp, &wr, &bad), "no receive");
}

static void begin_anew(void)
{
    move(IBV_QPS_ERR);
    move(IBV_QPS_RESET);
    run_qp(1);
}

static void obey(enum order order)
{
    if (order == RECEIVE)
        post_receive(ROOM, 0);
    else if (order == RECEIVE_SHORT)
        post_receive(ROOM / 2, 0);
    else if (order == RECEIVE_WITH_ANOTHER_KEY)
        post_receive(ROOM, 0x100);
    else if (order == MAKE_ADDRESS)
        make_ah();
    else if (order == FAIL)
        move(IBV_QPS_ERR);
    else if (order == BEGIN_ANEW)
        begin_anew();
}

/* Takes completions all the time, so that the story has none that was not polled. */
static void serve(void)
{
    unsigned char order;
    struct ibv_wc wc;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    open_all(ROOM, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ, 1);
    *meeting = (struct meeting){qp->qp_num, mr->rkey, (unsigned long)memory};
    need(write(line, "", 1) == 1, "no line");
    for (ssize_t got; (got = recv(line, &order, 1, MSG_DONTWAIT)); usleep(100)) {
        if (got == 1) {
            obey(order);
            need(write(line, "", 1) == 1, "no line");
        }
        ibv_poll_cq(cq, 1, &wc);
    }
}

/* --- the client */

static void demand(enum order order)
{
    unsigned char byte = (unsigned char)order;
    need(write(line, &byte, 1) == 1 && read(line, &byte, 1) == 1, "no server");
}

static void post(const struct step *step, unsigned long id)
{
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
    ibv_wr_start(ex);
    ex->wr_id = id;
    ex->wr_flags = IBV_SEND_SIGNALED;
    if (step->opcode == IBV_WR_SEND)
        ibv_wr_send(ex);
    else if (step->opcode == IBV_WR_RDMA_READ)
        ibv_wr_rdma_read(ex, meeting->rkey, meeting->memory);
    else
        ibv_wr_rdma_write(ex, meeting->rkey, meeting->memory);
    ibv_wr_set_sge(ex, mr->lkey + (step->fault == OTHER_LKEY ? 0x100 : 0), (uintptr_t)memory, step->length);
    ibv_wr_set_ud_addr(ex, ah, step->fault == NO_QP ? NOBODY : meeting->qp, QKEY + (step->fault == OTHER_QKEY));
    need(!ibv_wr_complete(ex), "not posted");
}

static void take(const struct step *step, unsigned long id)
{
    demand(step->order);
    post(step, id);
    if (step->fault == NO_ADDRESS_LEFT)
        need(!ibv_destroy_ah(ah), "the address handle is not destroyed");
    if (step->fault != HANGS)
        wait_for_completion();
}

static void run_client(const struct cause *cause, pid_t server)
{
    char ignored;
    open_all(MEMORY, IBV_ACCESS_LOCAL_WRITE, cause->rnr_retry);
    make_ah();
    need(read(line, &ignored, 1) == 1, "no server");
    for (unsigned i = 0; i < STEPS && cause->steps[i].length; i++)
        take(&cause->steps[i], i + 1);
    printf("%d %u %d %u\n", (int)getpid(), qp->qp_num, (int)server, meeting->qp);
    fflush(stdout);
    need(read(0, &ignored, 1) >= 0, "no input");
}

int main(int argc, char **argv)
{
    const struct cause *cause = NULL;
    int lines[2];
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++)
        if (argc > 1 && !strcmp(argv[1], causes[i].name))
            cause = &causes[i];
    meeting = mmap(NULL, sizeof *meeting, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    need(cause && meeting != MAP_FAILED && !socketpair(AF_UNIX, SOCK_STREAM, 0, lines), "no such cause");
    pid_t server = fork();
    line = lines[!server];
    close(lines[!!server]);
    if (!server) {
        serve();
        return 0;
    }
    run_client(cause, server);
    if (cause->steps[0].fault == HANGS)
        return 0; /* before the server, whose end would end the messages that wait */
    close(line);
    waitpid(server, NULL, 0);
    return 0;
}
