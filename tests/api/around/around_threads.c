/* Threads that make, use and destroy objects, while rules come and go, with the layers in front of the library:
 * around_threads PRELOADED. Prints TAP. The program executes itself with libsoftverbs-around.so preloaded, so it also
 * runs where a sanitizer is in both. */
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "script/requests.h"

enum { WORKERS = 3, ROUNDS = 60, MESSAGES = 8, CHANGES = 40, ROOM = 64 };

static struct ibv_context *context;

static void need(bool right, const char *what)
{
    if (right)
        return;
    printf("not ok 1 - threads bear layers that come and go: %s\n", what);
    fflush(stdout);
    _exit(1);
}

/* -- a worker */

static struct ibv_qp *loop(struct ibv_pd *pd, struct ibv_cq *cq)
{
    struct ibv_qp_init_attr init = {
        .send_cq = cq,
        .recv_cq = cq,
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1,
        .cap = {.max_send_wr = MESSAGES, .max_recv_wr = MESSAGES, .max_send_sge = 1, .max_recv_sge = 1}};
    struct ibv_qp *qp = ibv_create_qp(pd, &init);
    need(qp, "no queue pair");
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "INIT");
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                                .path_mtu = IBV_MTU_1024,
                                .dest_qp_num = qp->qp_num,
                                .ah_attr = {.is_global = 1, .port_num = 1, .grh.hop_limit = 1}};
    need(!ibv_query_gid(context, 1, 0, &attr.ah_attr.grh.dgid), "no GID");
    need(!ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                            IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
         "RTR");
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 6};
    need(!ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                            IBV_QP_MAX_QP_RD_ATOMIC),
         "RTS");
    return qp;
}

static void send_all(struct ibv_qp *qp, const struct ibv_mr *mr, struct ibv_cq *cq)
{
    struct ibv_sge sge = {.length = ROOM, .lkey = mr->lkey};
    struct ibv_recv_wr *bad_receive, receive = {.sg_list = &sge, .num_sge = 1};
    struct ibv_send_wr *bad, send = {.opcode = IBV_WR_SEND};
    struct ibv_wc wc;
    for (int i = 0; i < MESSAGES; i++) {
        sge.addr = (uintptr_t)mr->addr + (size_t)i * ROOM;
        need(!ibv_post_recv(qp, &receive, &bad_receive) && !ibv_post_send(qp, &send, &bad), "a post was refused");
    }
    for (int got = 0; got < 2 * MESSAGES;) {
        int found = ibv_poll_cq(cq, 1, &wc);
        need(!found || wc.status == IBV_WC_SUCCESS, "work failed");
        got += found;
    }
}

static void *work(void *memory)
{
    for (int round = 0; round < ROUNDS; round++) {
        struct ibv_pd *pd = ibv_alloc_pd(context);
        struct ibv_cq *cq = ibv_create_cq(context, 2 * MESSAGES, NULL, NULL, 0);
        struct ibv_mr *mr = pd ? ibv_reg_mr(pd, memory, (size_t)MESSAGES * ROOM, IBV_ACCESS_LOCAL_WRITE) : NULL;
        need(cq && mr, "no queue or region");
        struct ibv_qp *qp = loop(pd, cq);
        send_all(qp, mr, cq);
        need(!ibv_destroy_qp(qp) && !ibv_dereg_mr(mr) && !ibv_destroy_cq(cq) && !ibv_dealloc_pd(pd), "not destroyed");
    }
    return NULL;
}

/* -- rules that come and go */

static void ask(const char *request)
{
    char answer[REQUESTS_PART + 1] = "";
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int length = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, REQUESTS_SOCKET, (long)getpid());
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    int end = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    need(end >= 0 && !connect(end, (struct sockaddr *)&name, size), "the library does not listen");
    need(send(end, request, strlen(request), MSG_NOSIGNAL) > 0 && recv(end, answer, REQUESTS_PART, 0) > 0, "no answer");
    need(strstr(answer, "{\"rules\":[") || strstr(answer, "\"busy\""), answer);
    close(end);
}

static void change_rules(void)
{
    for (int i = 0; i < CHANGES; i++) {
        ask(REQUESTS_INJECT "rules when ibv_post_send: delay 1us\nwhen ibv_poll_cq: note\nwhen ibv_reg_mr: note");
        ask(REQUESTS_INJECT "clear");
    }
}

static void run(void)
{
    static char memory[WORKERS][MESSAGES * ROOM];
    pthread_t threads[WORKERS];
    struct ibv_device **list = ibv_get_device_list(NULL);
    context = list && *list ? ibv_open_device(*list) : NULL;
    need(context, "no device");
    ibv_free_device_list(list);
    for (int i = 0; i < WORKERS; i++)
        need(!pthread_create(&threads[i], NULL, work, memory[i]), "no thread");
    change_rules();
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    need(!ibv_close_device(context), "not closed");
    puts("ok 1 - threads bear layers that come and go\n1..1");
}

int main(int argc, char **argv)
{
    if (argc > 1 && !getenv("LD_PRELOAD")) {
        setenv("LD_PRELOAD", argv[1], 1);
        setenv("SOFTVERBS_AROUND_CHECK", "notes", 1);
        execv("/proc/self/exe", argv);
        return 1;
    }
    run();
    return 0;
}
