/* A client that withdraws its request before it is answered: the server's rdma_accept fails.
 *
 *     withdrawn PORT             listens; ends well when it could not accept
 *     withdrawn PORT ADDRESS     asks, and withdraws
 */
#include <errno.h>
#include <netdb.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/testing/patience.h"

enum { UNTIL_WITHDRAWN_US = 300000, A_QUEUE_PAIR = 0x1234 };

static void check(int error, const char *what)
{
    if (error) {
        perror(what);
        exit(1);
    }
}

static struct rdma_cm_id *take(struct rdma_event_channel *channel, enum rdma_cm_event_type expected)
{
    struct rdma_cm_event *event;
    check(rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
    struct rdma_cm_id *id = event->id;
    check(event->event != expected, rdma_event_str(event->event));
    rdma_ack_cm_event(event);
    return id;
}

/* The server learns of the request in less than that, and answers later. */
static int ask(struct rdma_event_channel *channel, struct rdma_cm_id *id, struct sockaddr *to)
{
    check(rdma_resolve_addr(id, NULL, to, PATIENCE), "rdma_resolve_addr");
    take(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
    check(rdma_resolve_route(id, PATIENCE), "rdma_resolve_route");
    take(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
    struct rdma_conn_param parameters = {.qp_num = A_QUEUE_PAIR, .retry_count = 7};
    check(rdma_connect(id, &parameters), "rdma_connect");
    usleep(UNTIL_WITHDRAWN_US); /* the server learns of the request */
    check(rdma_destroy_id(id), "rdma_destroy_id");
    puts("withdrawn");
    fflush(stdout);
    usleep(4 * UNTIL_WITHDRAWN_US); /* the end of the process would notify the server, too */
    return 0;
}

static int serve(struct rdma_event_channel *channel, struct rdma_cm_id *listener, struct sockaddr *at)
{
    check(rdma_bind_addr(listener, at), "rdma_bind_addr");
    check(rdma_listen(listener, 1), "rdma_listen");
    struct rdma_cm_id *id = take(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
    struct rdma_conn_param parameters = {.qp_num = A_QUEUE_PAIR};
    usleep(3 * UNTIL_WITHDRAWN_US); /* the request is withdrawn meanwhile */
    int error = rdma_accept(id, &parameters) ? errno : 0;
    puts(error == EINVAL ? "it is withdrawn" : "accepted");
    return error != EINVAL;
}

int main(int argc, char **argv)
{
    struct addrinfo hints = {.ai_family = AF_INET, .ai_flags = argc == 2 ? AI_PASSIVE : 0}, *found;
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id *id;
    check(!channel, "rdma_create_event_channel");
    check(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
    check(argc < 2 || getaddrinfo(argc == 3 ? argv[2] : NULL, argv[1], &hints, &found), "withdrawn PORT [ADDRESS]");
    return argc == 3 ? ask(channel, id, found->ai_addr) : serve(channel, id, found->ai_addr);
}
