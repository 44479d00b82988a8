/* Two programs that are connected and wait for the end of it, for which neither asks; each prints its process's number:
 *
 *     no_disconnect PORT             listens
 *     no_disconnect PORT ADDRESS [send]    connects; sends a message for which nothing is posted there
 */
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void check(int error, const char *what)
{
    if (error) {
        perror(what);
        exit(1);
    }
}

static struct rdma_cm_id *expect(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
    struct rdma_cm_event *event;
    check(rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
    check(event->event != type, rdma_event_str(event->event));
    struct rdma_cm_id *id = event->id;
    rdma_ack_cm_event(event);
    return id;
}

static void make_qp(struct rdma_cm_id *id)
{
    struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 16}};
    check(rdma_create_qp(id, NULL, &attr), "rdma_create_qp");
}

static void serve(struct rdma_event_channel *channel, struct rdma_cm_id *listener, struct rdma_addrinfo *at)
{
    check(rdma_bind_addr(listener, at->ai_src_addr), "rdma_bind_addr");
    check(rdma_listen(listener, 1), "rdma_listen");
    printf("%d\n", (int)getpid());
    fflush(stdout);
    struct rdma_cm_id *id = expect(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
    make_qp(id);
    check(rdma_accept(id, NULL), "rdma_accept");
    expect(channel, RDMA_CM_EVENT_ESTABLISHED);
}

static void send_to(struct rdma_cm_id *id)
{
    char text[8] = "nobody";
    check(rdma_post_send(id, NULL, text, sizeof text, NULL, IBV_SEND_INLINE | IBV_SEND_SIGNALED), "rdma_post_send");
}

static void ask(struct rdma_event_channel *channel, struct rdma_cm_id *id, struct rdma_addrinfo *at)
{
    check(rdma_resolve_addr(id, NULL, at->ai_dst_addr, 2000), "rdma_resolve_addr");
    expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
    check(rdma_resolve_route(id, 2000), "rdma_resolve_route");
    expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
    make_qp(id);
    check(rdma_connect(id, NULL), "rdma_connect");
    expect(channel, RDMA_CM_EVENT_ESTABLISHED);
    printf("%d\n", (int)getpid());
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_addrinfo hints = {.ai_flags = argc > 2 ? 0 : RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP}, *at;
    struct rdma_cm_id *id;
    check(argc < 2 || !channel, "rdma_create_event_channel");
    check(rdma_getaddrinfo(argc > 2 ? argv[2] : NULL, argv[1], &hints, &at), "rdma_getaddrinfo");
    check(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
    (argc > 2 ? ask : serve)(channel, id, at);
    if (argc > 3)
        send_to(id);
    expect(channel, RDMA_CM_EVENT_DISCONNECTED);
}
