/* Calls that a script disturbs, each with what it returned: scripted regions|receives|batch|polls|fork. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CALLS = 4, DEPTH = 4 };

static struct ibv_pd *pd;
static struct ibv_cq *cq;

static void say(const char *call, int answer)
{
    printf("%s %d errno %d\n", call, answer, errno);
    errno = 0;
}

static void regions(void)
{
    static char memory[4096];
    for (int i = 0; i < CALLS; i++)
        say("ibv_reg_mr", ibv_reg_mr(pd, memory, sizeof memory, 0) ? 0 : -1);
}

static struct ibv_qp *make_qp(enum ibv_qp_state state)
{
    struct ibv_qp_init_attr_ex init = {
        .send_cq = cq,
        .recv_cq = cq,
        .qp_type = IBV_QPT_UD,
        .cap = {.max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1},
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = pd,
        .send_ops_flags = IBV_QP_EX_WITH_SEND};
    struct ibv_qp *qp = ibv_create_qp_ex(pd->context, &init);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    if (!qp || ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY))
        exit(2);
    if (state == IBV_QPS_INIT)
        return qp;
    attr.qp_state = IBV_QPS_RTR;
    if (ibv_modify_qp(qp, &attr, IBV_QP_STATE))
        exit(2);
    attr.qp_state = IBV_QPS_RTS;
    if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN))
        exit(2);
    return qp;
}

/* Lists of four, then single ones until the queue is full, which shows how many of the list were taken. */
static void receives(void)
{
    struct ibv_qp *qp = make_qp(IBV_QPS_INIT);
    struct ibv_recv_wr list[DEPTH] = {0}, *bad = NULL, one = {0};
    for (int i = 0; i < DEPTH; i++) {
        list[i].wr_id = (uint64_t)i + 1;
        list[i].next = i + 1 < DEPTH ? &list[i + 1] : NULL;
    }
    errno = 0;
    int answer = ibv_post_recv(qp, list, &bad);
    say("ibv_post_recv", answer);
    printf("bad %d\n", answer ? (int)bad->wr_id : 0);
    int room = 0;
    while (!ibv_post_recv(qp, &one, &bad))
        room++;
    printf("room %d\n", room);
}

static void batch(void)
{
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(make_qp(IBV_QPS_RTS));
    for (int i = 0; i < 2; i++) {
        errno = 0;
        ibv_wr_start(qp);
        say("ibv_wr_complete", ibv_wr_complete(qp));
    }
}

static void polls(void)
{
    struct ibv_wc wc;
    for (int i = 0; i < 2; i++)
        say("ibv_poll_cq", ibv_poll_cq(cq, 1, &wc));
}

static void fork_and_poll(void)
{
    polls();
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        polls();
        exit(0);
    }
    waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } modes[] = {
        {"regions", regions}, {"receives", receives}, {"batch", batch}, {"polls", polls}, {"fork", fork_and_poll}};
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;
    if (!context) {
        say("ibv_open_device", -1);
        return 1;
    }
    pd = ibv_alloc_pd(context);
    cq = ibv_create_cq(context, 16, NULL, NULL, 0);
    if (!pd || !cq)
        return 2;
    errno = 0;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (argc > 1 && !strcmp(argv[1], modes[i].name))
            modes[i].run();
    return 0;
}
