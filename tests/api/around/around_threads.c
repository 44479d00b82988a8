/* Threads that make, use and destroy objects, while rules come and go, with the layers in front of the library:
 * around_threads PRELOADED. Prints TAP. The program executes itself with libsoftverbs-around.so preloaded, so it also
 * runs where a sanitizer is in both. */
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "loop.h"
#include "script/live/requests.h"

enum { WORKERS = 3, ROUNDS = 60, MESSAGES = 8, CHANGES = 40, ROOM = 64 };

static struct ibv_context *context;

/* -- a worker */

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
        struct ibv_qp *qp = make_qp(pd, cq, NULL, MESSAGES);
        connect_with_itself(qp);
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
    context = open_first();
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
    (void)argc;
    become_preloaded(argv, (const char *const[]){"SOFTVERBS_AROUND_CHECK", "notes", NULL});
    run();
    return 0;
}
