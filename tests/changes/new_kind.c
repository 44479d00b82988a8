/* A SEND over queue pairs of a type that headers do not name: new_kind NUMBER [wait]. It prints "arrived"; with `wait`
 * it then ends with its input. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "endpoint.h"

static char memory[2][16] = {"a message"};

static void post(struct endpoint *endpoint, struct ibv_qp *from, struct ibv_qp *to)
{
    struct ibv_mr *mr = endpoint_register(endpoint, memory, sizeof memory);
    struct ibv_sge source = {(uintptr_t)memory[0], sizeof memory[0], mr->lkey};
    struct ibv_sge destination = {(uintptr_t)memory[1], sizeof memory[1], mr->lkey};
    struct ibv_recv_wr receive = {.sg_list = &destination, .num_sge = 1}, *bad_receive;
    struct ibv_send_wr send = {.sg_list = &source, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad_send;
    if (ibv_post_recv(to, &receive, &bad_receive) || ibv_post_send(from, &send, &bad_send))
        die("the work is refused");
}

int main(int argc, char **argv)
{
    struct endpoint endpoint;
    enum ibv_qp_type type = (enum ibv_qp_type)(argc > 1 ? atoi(argv[1]) : 0);
    endpoint_open(&endpoint, 16);
    struct ibv_qp *from = endpoint_create_qp(&endpoint, type, 4, 4), *to = endpoint_create_qp(&endpoint, type, 4, 4);
    struct address addresses[] = {endpoint_address(&endpoint, from, NULL), endpoint_address(&endpoint, to, NULL)};
    endpoint_connect(from, &addresses[1], 14);
    endpoint_connect(to, &addresses[0], 14);
    post(&endpoint, from, to);
    struct ibv_wc wc;
    if (endpoint_wait(&endpoint, &wc, 1, 10) != 1 || wc.status || strcmp(memory[0], memory[1]))
        die("no message arrived");
    puts("arrived");
    fflush(stdout);
    while (argc > 2 && getchar() != EOF)
        ;
    return 0;
}
