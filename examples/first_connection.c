/* A first program of librdmacm: one end listens, the other connects and sends a line.
 *
 *     softverbs run -- ./first_connection                     the end that listens
 *     softverbs run -- ./first_connection 127.0.0.1 hello     the other
 *
 * Between hosts both take --net IFACE behind "run". */
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char line[256];

static void check(int error, const char *what)
{
    if (error) {
        perror(what);
        exit(1);
    }
}

/* The identifier of this end, with a queue pair for two messages. */
static struct rdma_cm_id *create(const char *address, int flags)
{
    struct rdma_addrinfo hints = {.ai_flags = flags, .ai_port_space = RDMA_PS_TCP}, *found;
    struct ibv_qp_init_attr attr = {.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
                                    .sq_sig_all = 1};
    struct rdma_cm_id *id;
    check(rdma_getaddrinfo(address, "7471", &hints, &found), "rdma_getaddrinfo");
    check(rdma_create_ep(&id, found, NULL, &attr), "rdma_create_ep");
    rdma_freeaddrinfo(found);
    return id;
}

static void serve(struct rdma_cm_id *listener)
{
    struct rdma_cm_id *id;
    struct ibv_wc completion;
    check(rdma_listen(listener, 1), "rdma_listen");
    check(rdma_get_request(listener, &id), "rdma_get_request");
    struct ibv_mr *mr = rdma_reg_msgs(id, line, sizeof line);
    check(rdma_post_recv(id, NULL, line, sizeof line, mr), "rdma_post_recv"); /* before the peer may send */
    check(rdma_accept(id, NULL), "rdma_accept");
    check(rdma_get_recv_comp(id, &completion) != 1 || completion.status, "rdma_get_recv_comp");
    printf("%.*s\n", (int)completion.byte_len, line);
    rdma_disconnect(id);
    rdma_dereg_mr(mr);
    rdma_destroy_ep(id);
}

static void send_line(struct rdma_cm_id *id, const char *text)
{
    struct ibv_wc completion;
    snprintf(line, sizeof line, "%s", text);
    struct ibv_mr *mr = rdma_reg_msgs(id, line, sizeof line);
    check(rdma_connect(id, NULL), "rdma_connect");
    check(rdma_post_send(id, NULL, line, strlen(line), mr, 0), "rdma_post_send");
    check(rdma_get_send_comp(id, &completion) != 1 || completion.status, "rdma_get_send_comp");
    rdma_disconnect(id);
    rdma_dereg_mr(mr);
}

int main(int argc, char **argv)
{
    struct rdma_cm_id *id = create(argc > 1 ? argv[1] : NULL, argc > 1 ? 0 : RAI_PASSIVE);
    if (argc > 1)
        send_line(id, argc > 2 ? argv[2] : "hello");
    else
        serve(id);
    rdma_destroy_ep(id);
    return 0;
}
