/* Prints the state of the network interface below a program's device, for interface_changes.py, which changes the
 * interface.
 * Each line of the standard input is a command, answered by one line:
 *
 *     state                 state of the port, active MTU in bytes, and the GIDs with their places
 *     events                the asynchronous events that were raised, once there is one or two seconds have passed bind
 *     ADDRESS PORT     "bound", or the errno of rdma_bind_addr; listens there
 *     files none|all        "done": the program gets no more descriptors, or as many as it may have
 *     serve                 accepts the next request and its end: the address that it came for, and its GID's place
 *     connect ADDRESS PORT  "connected", or the event that came instead
 *     rest MILLISECONDS     the processor time in microseconds that the process takes while nothing is asked of it
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/testing/patience.h"

enum { EVENT_MS = 2000, RESOLVE_MS = 2000, GIDS = 64 };

static struct ibv_context *context;
static struct rdma_event_channel *channel;

static void say_state(void)
{
    struct ibv_port_attr port;
    struct ibv_gid_entry table[GIDS];
    ssize_t count = ibv_query_gid_table(context, table, GIDS, 0);
    ibv_query_port(context, 1, &port);
    printf("%s %d", ibv_port_state_str(port.state), 128 << port.active_mtu);
    for (ssize_t i = 0; i < count; i++) {
        char text[INET6_ADDRSTRLEN];
        union ibv_gid same;
        struct ibv_gid_entry entry;
        bool agree = !ibv_query_gid(context, 1, (int)table[i].gid_index, &same) &&
                     !memcmp(&same, &table[i].gid, sizeof same) &&
                     !ibv_query_gid_ex(context, 1, table[i].gid_index, &entry, 0);
        printf(" %u=%s%s", table[i].gid_index, inet_ntop(AF_INET6, &table[i].gid, text, sizeof text),
               agree ? "" : "(differs)");
    }
    puts("");
}

static void say_events(void)
{
    struct pollfd ready = {context->async_fd, POLLIN, 0};
    int wait = EVENT_MS;
    while (poll(&ready, 1, wait) == 1) {
        struct ibv_async_event event;
        if (ibv_get_async_event(context, &event))
            break;
        printf("%d ", event.event_type);
        ibv_ack_async_event(&event);
        wait = 100;
    }
    puts("");
}

static void put_address(struct sockaddr_storage *to, const char *text, int port)
{
    struct sockaddr_in *ipv4 = (struct sockaddr_in *)to;
    struct sockaddr_in6 *ipv6 = (struct sockaddr_in6 *)to;
    memset(to, 0, sizeof *to);
    if (inet_pton(AF_INET, text, &ipv4->sin_addr) == 1) {
        ipv4->sin_family = AF_INET;
        ipv4->sin_port = htons((uint16_t)port);
    } else if (inet_pton(AF_INET6, text, &ipv6->sin6_addr) == 1) {
        ipv6->sin6_family = AF_INET6;
        ipv6->sin6_port = htons((uint16_t)port);
    }
}

static void bind_there(const char *text, int port)
{
    struct rdma_cm_id *id;
    struct sockaddr_storage address;
    put_address(&address, text, port);
    if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) || rdma_bind_addr(id, (struct sockaddr *)&address)) {
        printf("%s\n", strerrorname_np(errno));
        rdma_destroy_id(id);
    } else if (rdma_listen(id, 4)) {
        printf("bound, but not listening: %s\n", strerrorname_np(errno));
    } else {
        puts("bound");
    }
}

/* The next event, taken; its identifier, if it is the expected one, else says which and returns NULL. */
static struct rdma_cm_id *take(enum rdma_cm_event_type expected)
{
    struct pollfd ready = {channel->fd, POLLIN, 0};
    struct rdma_cm_event *event;
    if (poll(&ready, 1, PATIENCE) != 1 || rdma_get_cm_event(channel, &event)) {
        printf("no %s\n", rdma_event_str(expected));
        return NULL;
    }
    struct rdma_cm_id *id = event->id;
    bool right = event->event == expected;
    if (!right)
        printf("%s status %d\n", rdma_event_str(event->event), event->status);
    rdma_ack_cm_event(event);
    return right ? id : NULL;
}

static bool make_queue_pair(struct rdma_cm_id *id)
{
    struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};
    if (!rdma_create_qp(id, NULL, &init))
        return true;
    printf("rdma_create_qp: %s\n", strerrorname_np(errno));
    return false;
}

static void serve(void)
{
    char text[INET6_ADDRSTRLEN] = "";
    struct rdma_conn_param parameters = {.rnr_retry_count = 7};
    struct rdma_cm_id *id = take(RDMA_CM_EVENT_CONNECT_REQUEST);
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    if (!id || !make_queue_pair(id))
        return;
    const struct sockaddr *here = rdma_get_local_addr(id);
    if (here->sa_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)here)->sin_addr, text, sizeof text);
    else
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)here)->sin6_addr, text, sizeof text);
    if (rdma_accept(id, &parameters) || !take(RDMA_CM_EVENT_ESTABLISHED) ||
        ibv_query_qp(id->qp, &attr, IBV_QP_AV, &init))
        return;
    if (!take(RDMA_CM_EVENT_DISCONNECTED))
        return;
    printf("%s %u\n", text, attr.ah_attr.grh.sgid_index);
    rdma_disconnect(id);
    rdma_destroy_qp(id);
    rdma_destroy_id(id);
}

static void connect_to(const char *text, int port)
{
    struct rdma_conn_param parameters = {.retry_count = 7, .rnr_retry_count = 7};
    struct sockaddr_storage address;
    struct rdma_cm_id *id;
    put_address(&address, text, port);
    if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) ||
        rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, RESOLVE_MS) || !take(RDMA_CM_EVENT_ADDR_RESOLVED) ||
        rdma_resolve_route(id, RESOLVE_MS) || !take(RDMA_CM_EVENT_ROUTE_RESOLVED) || !make_queue_pair(id) ||
        rdma_connect(id, &parameters) || !take(RDMA_CM_EVENT_ESTABLISHED))
        return;
    rdma_disconnect(id);
    if (!take(RDMA_CM_EVENT_DISCONNECTED))
        return;
    puts("connected");
    rdma_destroy_qp(id);
    rdma_destroy_id(id);
}

static void rest(int milliseconds)
{
    clock_t before = clock();
    usleep((useconds_t)milliseconds * 1000);
    printf("%ld\n", (long)(clock() - before));
}

static void allow_files(const char *text)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = strcmp(text, "none") ? limit.rlim_max : 3;
    puts(setrlimit(RLIMIT_NOFILE, &limit) ? "refused" : "done");
}

int main(void)
{
    char line[200], word[20], text[100];
    int count, number;
    struct ibv_context **list = rdma_get_devices(&count);
    channel = rdma_create_event_channel();
    if (!list || !count || !channel)
        return 1;
    context = list[0];
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (fgets(line, sizeof line, stdin)) {
        int words = sscanf(line, "%19s %99s %d", word, text, &number);
        if (words >= 1 && !strcmp(word, "state"))
            say_state();
        else if (words >= 1 && !strcmp(word, "events"))
            say_events();
        else if (words == 2 && !strcmp(word, "files"))
            allow_files(text);
        else if (words >= 1 && !strcmp(word, "serve"))
            serve();
        else if (words == 2 && !strcmp(word, "rest"))
            rest(atoi(text));
        else if (words == 3 && !strcmp(word, "bind"))
            bind_there(text, number);
        else if (words == 3 && !strcmp(word, "connect"))
            connect_to(text, number);
        else
            puts("what?");
    }
    return 0;
}
