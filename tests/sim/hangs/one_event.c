/* Polls one entry for each event, while a thread sends messages some time apart. */
#include <pthread.h>
#include <time.h>

#include "endpoint.h"

enum { MESSAGES = 8, APART = 2000, LENGTH = 64 };

static struct endpoint endpoint;
static struct ibv_mr *mr;
static char memory[LENGTH];

static void *send_all(void *qp)
{
    struct ibv_sge sge = {(uintptr_t)memory, LENGTH, mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
    for (int i = 0; i < MESSAGES; i++) {
        if (ibv_post_send(qp, &wr, &bad))
            die("ibv_post_send");
        nanosleep(&(struct timespec){.tv_nsec = APART}, NULL);
    }
    return NULL;
}

static struct ibv_qp *connect_both(void)
{
    struct ibv_sge sge = {(uintptr_t)memory, LENGTH, mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    struct ibv_qp *from = endpoint_create_qp(&endpoint, IBV_QPT_RC, MESSAGES, 1);
    struct ibv_qp *to = endpoint_create_qp(&endpoint, IBV_QPT_RC, 1, MESSAGES);
    struct address sender = endpoint_address(&endpoint, from, mr), receiver = endpoint_address(&endpoint, to, mr);
    endpoint_connect(from, &receiver, 14);
    endpoint_connect(to, &sender, 14);
    for (int i = 0; i < MESSAGES; i++)
        if (ibv_post_recv(to, &wr, &bad))
            die("ibv_post_recv");
    return from;
}

/* Arms before it polls, so no entry comes between unseen. */
static int receive_one(void)
{
    struct ibv_cq *cq;
    struct ibv_wc wc;
    void *context;
    if (ibv_get_cq_event(endpoint.channel, &cq, &context) || ibv_req_notify_cq(cq, 0))
        die("no event");
    ibv_ack_cq_events(cq, 1);
    return ibv_poll_cq(cq, 1, &wc);
}

int main(void)
{
    pthread_t sender;
    endpoint_open(&endpoint, 4 * MESSAGES);
    mr = endpoint_register(&endpoint, memory, LENGTH);
    struct ibv_qp *from = connect_both();
    if (ibv_req_notify_cq(endpoint.cq, 0) || pthread_create(&sender, NULL, send_all, from))
        die("no beginning");
    for (int received = 0; received < MESSAGES;)
        received += receive_one();
    pthread_join(sender, NULL);
    return 0;
}
