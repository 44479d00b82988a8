/* A process refuses a request, and the line of the failed request has what that process says of it. Where it has ended,
 * and the requester learns that first, lets go of it, and takes the NAK then, the words are from its last lines. */
#include <errno.h>
#include <glob.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/testing/patience.h"
#include "ipc/node.h"
#include "lines.h"
#include "process/process.h"
#include "verbs/qp/qp.h"

enum { SIZE = 64, NO_KEY = 0x7fffff00 };

struct end {
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    struct ibv_qp *qp;
};

struct about {
    uint32_t number;
    union ibv_gid gid;
};

static char memory[SIZE];

#define NEED(what)                                                                                                     \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            printf("# line %d: %s\n", __LINE__, #what);                                                                \
            fflush(stdout);                                                                                            \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

static void connect_to(struct ibv_qp *qp, const struct about *peer)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    NEED(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                                .path_mtu = IBV_MTU_1024,
                                .dest_qp_num = peer->number,
                                .min_rnr_timer = 1,
                                .ah_attr = {.is_global = 1, .port_num = 1, .grh.dgid = peer->gid}};
    NEED(!ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                            IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 20, .retry_cnt = 7, .rnr_retry = 7};
    NEED(!ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                            IBV_QP_MAX_QP_RD_ATOMIC));
}

static struct end open_end(int meeting)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context = list && *list ? ibv_open_device(*list) : NULL;
    struct end end;
    struct about mine, peer;
    NEED(context);
    ibv_free_device_list(list);
    struct ibv_pd *pd = ibv_alloc_pd(context);
    end.cq = ibv_create_cq(context, 8, NULL, NULL, 0);
    end.mr = ibv_reg_mr(pd, memory, SIZE, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_qp_init_attr init = {
        .send_cq = end.cq, .recv_cq = end.cq, .qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 0}};
    NEED(end.mr && (end.qp = ibv_create_qp(pd, &init)) && !ibv_query_gid(context, 1, 0, &mine.gid));
    mine.number = end.qp->qp_num;
    NEED(write(meeting, &mine, sizeof mine) == sizeof mine && read(meeting, &peer, sizeof peer) == sizeof peer);
    connect_to(end.qp, &peer);
    return end;
}

static void receive(struct end *end, uint32_t key)
{
    struct ibv_sge sge = {(uintptr_t)memory, SIZE, key};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    NEED(!ibv_post_recv(end->qp, &wr, &bad));
}

static void send_one(struct end *end)
{
    struct ibv_sge sge = {(uintptr_t)memory, SIZE, end->mr->lkey};
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;
    NEED(!ibv_post_send(end->qp, &wr, &bad));
}

static enum ibv_wc_status next_status(struct end *end)
{
    struct ibv_wc wc;
    time_t begun = time(NULL);
    while (!ibv_poll_cq(end->cq, 1, &wc))
        NEED((double)(time(NULL) - begun) <= PATIENCE_SECONDS);
    return wc.status;
}

static void swap_signs(int meeting)
{
    char sign = 0;
    NEED(write(meeting, &sign, 1) == 1 && read(meeting, &sign, 1) == 1);
}

/* Takes a message and answers it, so that there are rings both ways, and refuses the next. */
static int refuse(int meeting)
{
    struct end end = open_end(meeting);
    receive(&end, end.mr->lkey);
    receive(&end, NO_KEY);
    swap_signs(meeting);
    NEED(next_status(&end) == IBV_WC_SUCCESS);
    send_one(&end);
    NEED(next_status(&end) == IBV_WC_SUCCESS);
    NEED(next_status(&end) == IBV_WC_LOC_PROT_ERR);
    return 0;
}

static int refuse_and_stay(int meeting)
{
    int result = refuse(meeting);
    swap_signs(meeting);
    return result;
}

/* No thread empties the rings: the process that refused has ended by the time that the queue pair sends again. */
static void let_go_of_it(struct end *end, pid_t peer)
{
    struct qp *qp = qp_of(end->qp);
    int status = -1;
    lock_take(&qp->process->progress);
    send_one(end);
    NEED(waitpid(peer, &status, 0) == peer && !status);
    NEED(qp->path.peer && !node_alive(qp->process->node, qp->path.peer));
    send_one(end);
    NEED(!qp->path.peer);
    lock_release(&qp->process->progress);
}

/* Returns true if the failed request's line has the words of this process about it. */
static bool has_words(pid_t of)
{
    char text[LINES], words[128];
    lines_read(text);
    snprintf(words, sizeof words, "REM_OP_ERR: process %d (%s) refused it: ", (int)of, program_invocation_short_name);
    const char *line = strstr(text, words);
    if (!line || !strstr(line, "(its reason 201) (reason 109)"))
        printf("# no \"%s\" in\n# %s", words, text);
    return line && strstr(line, "(its reason 201) (reason 109)");
}

/* Starts a peer before this process has threads, as ThreadSanitizer wants it. */
static pid_t start(int (*peer)(int meeting), int meeting[2])
{
    NEED(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, meeting));
    pid_t child = fork();
    if (!child)
        _exit(peer(meeting[1]));
    return child;
}

/* One message has passed each way when this returns. */
static struct end meet(int meeting)
{
    struct end end = open_end(meeting);
    receive(&end, end.mr->lkey);
    swap_signs(meeting);
    send_one(&end);
    NEED(next_status(&end) == IBV_WC_SUCCESS && next_status(&end) == IBV_WC_SUCCESS);
    return end;
}

/* The story of a queue pair that failed can be read while its process lives, as that may be killed. */
static bool has_story(pid_t of)
{
    char pattern[256];
    glob_t found;
    time_t begun = time(NULL);
    snprintf(pattern, sizeof pattern, "%s/last-%d-*.story", getenv("SOFTVERBS_DIR"), (int)of);
    while (glob(pattern, 0, NULL, &found)) {
        if ((double)(time(NULL) - begun) > PATIENCE_SECONDS) {
            printf("# no %s\n", pattern);
            return false;
        }
        usleep(1000);
    }
    globfree(&found);
    return true;
}

static bool is_refused_with_words(pid_t child, int meeting)
{
    int status = -1;
    struct end end = meet(meeting);
    send_one(&end);
    NEED(next_status(&end) == IBV_WC_REM_OP_ERR);
    bool fine = has_words(child) && has_story(getpid());
    NEED(!ibv_destroy_qp(end.qp));
    swap_signs(meeting);
    NEED(waitpid(child, &status, 0) == child && !status);
    return fine;
}

/* Few processes are asked at a time. The first question has ended when the second begins. */
static bool a_refusal_has_the_words_of_its_process(void)
{
    int meetings[2][2];
    pid_t first = start(refuse_and_stay, meetings[0]), second = start(refuse_and_stay, meetings[1]);
    return is_refused_with_words(first, meetings[0][0]) && is_refused_with_words(second, meetings[1][0]);
}

static bool a_refusal_keeps_its_words_when_its_process_was_let_go(void)
{
    int meeting[2];
    pid_t child = start(refuse, meeting);
    struct end end = meet(meeting[0]);
    let_go_of_it(&end, child);
    NEED(next_status(&end) == IBV_WC_REM_OP_ERR);
    return has_words(child);
}

/* Neither case finds the devices that the other left open. */
static bool in_child(bool (*test)(void))
{
    int status = -1;
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        bool fine = test();
        fflush(stdout);
        _exit(!fine);
    }
    return waitpid(child, &status, 0) == child && !status;
}

static int report(unsigned number, const char *sentence, bool (*test)(void))
{
    bool fine = in_child(test);
    printf("%sok %u - %s\n", fine ? "" : "not ", number, sentence);
    return !fine;
}

int main(void)
{
    NEED(lines_start());
    int failed = report(1, "a refusal has the words of its process", a_refusal_has_the_words_of_its_process);
    failed |= report(2, "a refusal keeps its words when its process was let go",
                     a_refusal_keeps_its_words_when_its_process_was_let_go);
    printf("1..2\n");
    lines_end();
    return failed;
}
