/* Programs that make mistakes with librdmacm: mistakes_connections CASE VARIANT, as mistakes.c has it. Both sides of a
 * connection are in one process. */
#include <arpa/inet.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mistakes.h"

enum { ASKED = 2, LONG = 2000 /* ms */, LATE = 1000000, SOON = 100000 /* us */ };

struct connection {
    struct rdma_event_channel *active, *passive;
    struct rdma_cm_id *listener, *client, *server;
    struct rdma_cm_event *request; /* not acknowledged */
};

/* Of a device. */
static const char *address(void)
{
    const char *given = getenv("MISTAKES_ADDRESS");
    return given ? given : "127.0.0.1";
}

static struct rdma_cm_event *fetch(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
    struct rdma_cm_event *event;
    MUST(!rdma_get_cm_event(channel, &event) && event->event == type);
    return event;
}

static void pass(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
    MUST(!rdma_ack_cm_event(fetch(channel, type)));
}

static void listen_on(struct connection *connection)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(address())};
    MUST(connection->passive = rdma_create_event_channel());
    MUST(!rdma_create_id(connection->passive, &connection->listener, NULL, RDMA_PS_TCP));
    MUST(!rdma_bind_addr(connection->listener, (struct sockaddr *)&any) && !rdma_listen(connection->listener, 1));
}

static void make_qp(struct rdma_cm_id *id)
{
    struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC};
    attr.cap = (struct ibv_qp_cap){.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1};
    MUST(!rdma_create_qp(id, NULL, &attr));
}

static void resolve(struct rdma_event_channel *channel, struct rdma_cm_id *id, uint16_t port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(address()), .sin_port = port};
    MUST(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, LONG));
    pass(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
    MUST(!rdma_resolve_route(id, LONG));
    pass(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

/* Waits until the request has arrived. */
static void ask(struct connection *connection)
{
    struct rdma_conn_param parameters = {.initiator_depth = ASKED, .responder_resources = ASKED, .retry_count = 6};
    parameters.rnr_retry_count = 6;
    listen_on(connection);
    MUST(connection->active = rdma_create_event_channel());
    MUST(!rdma_create_id(connection->active, &connection->client, NULL, RDMA_PS_TCP));
    resolve(connection->active, connection->client, rdma_get_src_port(connection->listener));
    make_qp(connection->client);
    MUST(!rdma_connect(connection->client, &parameters));
    connection->request = fetch(connection->passive, RDMA_CM_EVENT_CONNECT_REQUEST);
    connection->server = connection->request->id;
    make_qp(connection->server);
}

static void wait_until_connected(const struct connection *connection)
{
    pass(connection->active, RDMA_CM_EVENT_ESTABLISHED);
    pass(connection->passive, RDMA_CM_EVENT_ESTABLISHED);
}

static void connect_both(struct connection *connection)
{
    struct rdma_conn_param parameters = {.initiator_depth = 1, .responder_resources = ASKED, .rnr_retry_count = 6};
    ask(connection);
    MUST(!rdma_accept(connection->server, &parameters) && !rdma_ack_cm_event(connection->request));
    wait_until_connected(connection);
}

static void disconnect_both(const struct connection *connection)
{
    MUST(!rdma_disconnect(connection->client));
    pass(connection->passive, RDMA_CM_EVENT_DISCONNECTED);
    MUST(!rdma_disconnect(connection->server));
    pass(connection->active, RDMA_CM_EVENT_DISCONNECTED);
}

static void destroy_side(struct rdma_cm_id *id)
{
    rdma_destroy_qp(id);
    MUST(!rdma_destroy_id(id));
}

/* But for the sides. */
static void close_rest(const struct connection *connection)
{
    MUST(!rdma_destroy_id(connection->listener));
    rdma_destroy_event_channel(connection->active);
    rdma_destroy_event_channel(connection->passive);
}

static void close_all(const struct connection *connection)
{
    destroy_side(connection->client);
    destroy_side(connection->server);
    close_rest(connection);
}

/* -- events */

struct late {
    struct rdma_event_channel *channel;
    struct rdma_cm_event *event; /* NULL: it fetches one */
    int wait;                    /* us */
};

static void *acknowledge_event_late(void *argument)
{
    struct late *late = argument;
    struct rdma_cm_event *event = late->event ? late->event : fetch(late->channel, RDMA_CM_EVENT_DISCONNECTED);
    usleep((unsigned)late->wait);
    MUST(!rdma_ack_cm_event(event));
    return NULL;
}

/* In the thread that handles the event; the event of a request, for its listener, by another thread. */
static void forget_event(enum loopback_variant variant)
{
    struct connection connection;
    struct late late = {.wait = variant == TWIN ? SOON : LATE};
    pthread_t thread;
    connect_both(&connection);
    late.channel = connection.passive;
    MUST(!rdma_disconnect(connection.client));
    if (variant == FAULTY)
        late.event = fetch(connection.passive, RDMA_CM_EVENT_DISCONNECTED);
    MUST(!pthread_create(&thread, NULL, acknowledge_event_late, &late));
    usleep(SOON / 2); /* before the other thread acknowledges */
    rdma_destroy_qp(connection.server);
    if (variant == NEIGHBOUR)
        MUST(!rdma_destroy_id(connection.server)); /* cm-event-unacknowledged neighbour */
    else
        MUST(!rdma_destroy_id(connection.server)); /* cm-event-unacknowledged faulty */
    MUST(!pthread_join(thread, NULL));
    pass(connection.active, RDMA_CM_EVENT_DISCONNECTED);
    destroy_side(connection.client);
    close_rest(&connection);
}

static void *acknowledge_again(void *event)
{
    MUST(rdma_ack_cm_event(event) && errno == EINVAL); /* cm-event-overacknowledged neighbour */
    return NULL;
}

/* The event of a connection that ends, by the thread that fetched it; by another one. */
static void acknowledge_event_twice(enum loopback_variant variant)
{
    struct connection connection;
    pthread_t thread;
    connect_both(&connection);
    MUST(!rdma_disconnect(connection.client));
    struct rdma_cm_event *event = fetch(connection.passive, RDMA_CM_EVENT_DISCONNECTED);
    MUST(!rdma_ack_cm_event(event));
    if (variant == FAULTY)
        MUST(rdma_ack_cm_event(event) && errno == EINVAL); /* cm-event-overacknowledged faulty */
    if (variant == NEIGHBOUR)
        MUST(!pthread_create(&thread, NULL, acknowledge_again, event) && !pthread_join(thread, NULL));
    MUST(!rdma_disconnect(connection.server));
    pass(connection.active, RDMA_CM_EVENT_DISCONNECTED);
    close_all(&connection);
}

/* One; the one of both sides. */
static void close_channel_early(enum loopback_variant variant)
{
    struct connection connection;
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id *id;
    MUST(channel);
    if (variant == NEIGHBOUR) {
        ask(&connection);
        MUST(!rdma_reject(connection.server, NULL, 0) && !rdma_ack_cm_event(connection.request));
        pass(connection.active, RDMA_CM_EVENT_REJECTED);
        destroy_side(connection.client);
        rdma_destroy_event_channel(connection.active);
        rdma_destroy_qp(connection.server);
        MUST(!rdma_destroy_id(connection.listener));
        rdma_destroy_event_channel(connection.passive); /* cm-channel-in-use neighbour */
        rdma_destroy_event_channel(channel);
        _exit(0);
    }
    MUST(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
    if (variant == TWIN)
        MUST(!rdma_destroy_id(id));
    rdma_destroy_event_channel(channel); /* cm-channel-in-use faulty */
    if (variant != TWIN)
        _exit(0);
}

/* -- connections */

/* One more than what was asked for; all that there may be. */
static void accept_deeply(enum loopback_variant variant)
{
    struct connection connection;
    struct rdma_conn_param parameters = {.responder_resources = ASKED, .rnr_retry_count = 6};
    ask(&connection);
    parameters.initiator_depth = variant == TWIN ? ASKED : variant == NEIGHBOUR ? 16 : ASKED + 1;
    if (variant == NEIGHBOUR)
        MUST(!rdma_accept(connection.server, &parameters)); /* accept-depth-high neighbour */
    else
        MUST(!rdma_accept(connection.server, &parameters)); /* accept-depth-high faulty */
    MUST(!rdma_ack_cm_event(connection.request));
    wait_until_connected(&connection);
    disconnect_both(&connection);
    close_all(&connection);
}

/* The identifier of the side that asked; of the other side. */
static void leave_connected(enum loopback_variant variant)
{
    struct connection connection;
    connect_both(&connection);
    if (variant == TWIN)
        disconnect_both(&connection);
    rdma_destroy_qp(connection.client);
    rdma_destroy_qp(connection.server);
    if (variant == NEIGHBOUR) {
        MUST(!rdma_destroy_id(connection.server)); /* disconnect-missing neighbour */
        pass(connection.active, RDMA_CM_EVENT_DISCONNECTED);
        MUST(!rdma_destroy_id(connection.client));
    } else {
        MUST(!rdma_destroy_id(connection.client)); /* disconnect-missing faulty */
        if (variant != TWIN)
            pass(connection.passive, RDMA_CM_EVENT_DISCONNECTED);
        MUST(!rdma_destroy_id(connection.server));
    }
    close_rest(&connection);
}

/* The queue pair of a connection; of an identifier that was never connected. */
static void leave_qp(enum loopback_variant variant)
{
    struct connection connection;
    connect_both(&connection);
    struct ibv_qp *left = connection.client->qp;
    disconnect_both(&connection);
    if (variant == TWIN)
        MUST(!ibv_destroy_qp(left));           /* as some do, which rdma_destroy_id can't know */
    MUST(!rdma_destroy_id(connection.client)); /* cm-qp-left faulty */
    if (variant != TWIN)
        MUST(!ibv_destroy_qp(left));
    destroy_side(connection.server);
    close_rest(&connection);
}

static void leave_unconnected_qp(enum loopback_variant variant)
{
    struct connection connection;
    struct rdma_cm_id *id;
    listen_on(&connection);
    MUST(connection.active = rdma_create_event_channel());
    MUST(!rdma_create_id(connection.active, &id, NULL, RDMA_PS_TCP));
    resolve(connection.active, id, rdma_get_src_port(connection.listener));
    make_qp(id);
    struct ibv_qp *left = id->qp;
    MUST(!rdma_destroy_id(id)); /* cm-qp-left neighbour */
    MUST(!ibv_destroy_qp(left));
    close_rest(&connection);
}

static void leave_either_qp(enum loopback_variant variant)
{
    (variant == NEIGHBOUR ? leave_unconnected_qp : leave_qp)(variant);
}

/* -- of no rule by itself: rules_test.py */

/* A call that librdmacm refuses is a finding of refused-call only; and an identifier is destroyed once. */
static void be_refused(enum loopback_variant variant)
{
    struct connection connection;
    struct rdma_conn_param parameters = {.private_data = &parameters, .private_data_len = 57};
    struct rdma_cm_id *id;
    listen_on(&connection);
    MUST(connection.active = rdma_create_event_channel());
    MUST(!rdma_create_id(connection.active, &id, NULL, RDMA_PS_TCP));
    resolve(connection.active, id, rdma_get_src_port(connection.listener));
    make_qp(id);
    MUST(rdma_connect(id, &parameters) && errno == EINVAL);
    destroy_side(id);
    MUST(rdma_destroy_id(id) && errno == EINVAL);
    close_rest(&connection);
}

/* Synchronous identifiers have their events to themselves. */
static void connect_synchronously(enum loopback_variant variant)
{
    struct rdma_addrinfo *found, hints = {.ai_port_space = RDMA_PS_TCP};
    struct ibv_qp_init_attr attr = {.cap = {1, 1, 1, 1, 0}};
    struct rdma_cm_id *id;
    struct connection connection;
    char port[8];
    listen_on(&connection);
    snprintf(port, sizeof port, "%u", ntohs(rdma_get_src_port(connection.listener)));
    MUST(!rdma_getaddrinfo(address(), port, &hints, &found) && !rdma_create_ep(&id, found, NULL, &attr));
    rdma_freeaddrinfo(found);
    rdma_destroy_ep(id);
    MUST(connection.active = rdma_create_event_channel());
    close_rest(&connection);
}

static const struct {
    const char *name;
    void (*run)(enum loopback_variant);
} cases[] = {
    {"cm-event-unacknowledged", forget_event},
    {"cm-event-overacknowledged", acknowledge_event_twice},
    {"cm-channel-in-use", close_channel_early},
    {"accept-depth-high", accept_deeply},
    {"disconnect-missing", leave_connected},
    {"cm-qp-left", leave_either_qp},
    {"cm-refused", be_refused},
    {"cm-synchronous", connect_synchronously},
};

int main(int argc, char **argv)
{
    static const char *const variants[] = {[FAULTY] = "faulty", [TWIN] = "twin", [NEIGHBOUR] = "neighbour"};
    for (size_t i = 0; argc == 3 && i < sizeof cases / sizeof *cases; i++)
        for (enum loopback_variant variant = FAULTY; variant <= NEIGHBOUR; variant++)
            if (!strcmp(cases[i].name, argv[1]) && !strcmp(variants[variant], argv[2])) {
                cases[i].run(variant);
                return 0;
            }
    fprintf(stderr, "mistakes_connections CASE faulty|twin|neighbour\n");
    return 2;
}
