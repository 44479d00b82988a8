/* The functions that callgrind counts (tests/clients/programs/budget.py): each whose name begins with `count_` does something STEPS times
 * over, between two queue pairs of this process. Usage: post write|send */
#include <stdio.h>
#include <string.h>

#include "endpoint.h"

enum { STEPS = 64, DEPTH = 4 * STEPS, BATCHES = 32, WARM_UP = 2000, STORY = 16 };

struct pair {
    struct endpoint endpoint;
    struct ibv_cq *receive_cq;
    struct ibv_qp *sender, *receiver;
    struct ibv_send_wr wr; /* eight bytes inline, unsignalled */
    struct ibv_sge sge;
    uint32_t lkey;
};

static char memory[64];

static void open_pair(struct pair *pair)
{
    struct endpoint *endpoint = &pair->endpoint;
    endpoint_open(endpoint, DEPTH);
    struct endpoint other = *endpoint;
    other.cq = pair->receive_cq = ibv_create_cq(endpoint->context, DEPTH, NULL, NULL, 0);
    if (!other.cq)
        die("no completion queue");
    struct ibv_mr *mr = endpoint_register(endpoint, memory, sizeof memory);
    pair->sender = endpoint_create_qp(endpoint, IBV_QPT_RC, DEPTH, 1);
    pair->receiver = endpoint_create_qp(&other, IBV_QPT_RC, 1, DEPTH);
    struct address from = endpoint_address(endpoint, pair->sender, mr);
    struct address to = endpoint_address(endpoint, pair->receiver, mr);
    endpoint_connect(pair->sender, &to, 14);
    endpoint_connect(pair->receiver, &from, 14);
    pair->sge = (struct ibv_sge){.addr = (uintptr_t)memory, .length = 8};
    pair->wr = (struct ibv_send_wr){.sg_list = &pair->sge, .num_sge = 1, .send_flags = IBV_SEND_INLINE};
    pair->wr.wr.rdma.remote_addr = to.memory;
    pair->wr.wr.rdma.rkey = to.rkey;
    pair->lkey = mr->lkey;
}

static inline void post(struct pair *pair)
{
    struct ibv_send_wr *bad;
    if (ibv_post_send(pair->sender, &pair->wr, &bad))
        die("a send is refused");
}

static inline void poll_nothing(struct pair *pair)
{
    struct ibv_wc wc;
    if (ibv_poll_cq(pair->endpoint.cq, 1, &wc))
        die("an unsignalled send has a completion");
}

__attribute__((noinline)) static void count_post(struct pair *pair)
{
    for (int i = 0; i < STEPS; i++)
        post(pair);
}

__attribute__((noinline)) static void count_post_and_poll(struct pair *pair)
{
    for (int i = 0; i < STEPS; i++) {
        post(pair);
        poll_nothing(pair);
    }
}

__attribute__((noinline)) static void count_empty_poll(struct pair *pair)
{
    for (int i = 0; i < STEPS; i++)
        poll_nothing(pair);
}

static void post_receives(struct pair *pair, int count)
{
    struct ibv_recv_wr wr = {.num_sge = 1}, *bad;
    struct ibv_sge sge = {.addr = (uintptr_t)memory, .length = sizeof memory, .lkey = pair->lkey};
    wr.sg_list = &sge;
    for (int i = 0; i < count; i++)
        if (ibv_post_recv(pair->receiver, &wr, &bad))
            die("a receive is refused");
}

/* A signalled one ends the batch: its completion frees all places in the send queue. */
static void settle(struct pair *pair, enum ibv_wr_opcode opcode)
{
    struct ibv_send_wr last = pair->wr, *bad;
    struct ibv_wc wc;
    last.opcode = opcode;
    last.send_flags |= IBV_SEND_SIGNALED;
    if (ibv_post_send(pair->sender, &last, &bad) || endpoint_wait(&pair->endpoint, &wc, 1, 60) != 1 || wc.status)
        die("a batch does not end");
    while (ibv_poll_cq(pair->receive_cq, 1, &wc))
        if (wc.status)
            die("a receive ends in %s", ibv_wc_status_str(wc.status));
}

/* Runs a batch. This thread polls first, so that the helper thread does nothing while instructions are counted. */
static void run_batch(struct pair *pair, void (*count)(struct pair *))
{
    if (pair->wr.opcode == IBV_WR_SEND)
        post_receives(pair, STEPS);
    for (int i = 0; i < WARM_UP; i++)
        poll_nothing(pair);
    count(pair);
    settle(pair, IBV_WR_RDMA_WRITE);
}

int main(int count, char **arguments)
{
    static struct pair pair;
    open_pair(&pair);
    pair.wr.opcode = count > 1 && !strcmp(arguments[1], "send") ? IBV_WR_SEND : IBV_WR_RDMA_WRITE;
    for (int i = 0; i < STORY; i++) { /* their first messages make the stories of both queue pairs */
        if (pair.wr.opcode == IBV_WR_SEND)
            post_receives(&pair, 1);
        settle(&pair, pair.wr.opcode);
    }
    for (int i = 0; i < BATCHES; i++) {
        run_batch(&pair, count_post);
        run_batch(&pair, count_post_and_poll);
        if (pair.wr.opcode == IBV_WR_RDMA_WRITE)
            run_batch(&pair, count_empty_poll);
    }
    return 0;
}
