/* A program that closes its listener when it has a request, and accepts that only when the peer must have asked again:
 *
 *     late_accept PORT             listens
 *     late_accept PORT ADDRESS     connects; ends well when it is connected, and not rejected
 */
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { UNTIL_ASKED_AGAIN = 8 }; /* seconds; a REQ is repeated after 6.1 */

static void check(int error, const char *what)
{
    if (error) {
        perror(what);
        exit(1);
    }
}

static struct rdma_cm_id *listen_at(const char *port)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP}, *found;
    struct rdma_cm_id *listener;
    check(!channel, "rdma_create_event_channel");
    check(rdma_getaddrinfo(NULL, port, &hints, &found), "rdma_getaddrinfo");
    check(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP), "rdma_create_id");
    check(rdma_bind_addr(listener, found->ai_src_addr), "rdma_bind_addr");
    check(rdma_listen(listener, 1), "rdma_listen");
    rdma_freeaddrinfo(found);
    return listener;
}

/* Returns the identifier of a connection request after the listener is destroyed; another listener can have the port
 * then. */
static struct rdma_cm_id *take_request(const char *port)
{
    struct rdma_cm_id *listener = listen_at(port);
    struct rdma_cm_event *event;
    check(rdma_get_cm_event(listener->channel, &event), "rdma_get_cm_event");
    struct rdma_cm_id *id = event->id;
    rdma_ack_cm_event(event);
    check(rdma_destroy_id(listener), "rdma_destroy_id");
    check(rdma_destroy_id(listen_at(port)), "rdma_destroy_id");
    return id;
}

static void serve(const char *port, struct ibv_qp_init_attr *attr)
{
    struct rdma_cm_id *id = take_request(port);
    struct rdma_cm_event *event;
    sleep(UNTIL_ASKED_AGAIN); /* the client's REQ is repeated */
    check(rdma_create_qp(id, NULL, attr), "rdma_create_qp");
    check(rdma_accept(id, NULL), "rdma_accept");
    check(rdma_get_cm_event(id->channel, &event), "rdma_get_cm_event");
    check(event->event != RDMA_CM_EVENT_ESTABLISHED, rdma_event_str(event->event));
    rdma_ack_cm_event(event);
    rdma_disconnect(id);
    rdma_destroy_ep(id);
}

static void ask(const char *port, const char *address, struct ibv_qp_init_attr *attr)
{
    struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP}, *found;
    struct rdma_cm_id *id;
    check(rdma_getaddrinfo(address, port, &hints, &found), "rdma_getaddrinfo");
    check(rdma_create_ep(&id, found, NULL, attr), "rdma_create_ep");
    check(rdma_connect(id, NULL), "rdma_connect");
    rdma_disconnect(id);
    rdma_destroy_ep(id);
}

int main(int argc, char **argv)
{
    struct ibv_qp_init_attr attr = {.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
                                    .qp_type = IBV_QPT_RC};
    if (argc > 2)
        ask(argv[1], argv[2], &attr);
    else
        serve(argv[1], &attr);
    puts("connected");
    return 0;
}
