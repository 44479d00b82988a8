#include "commands_set_up.h"

#include "diag/log.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct program on;

#define MUST(condition) ((condition) ? (void)0 : must(#condition, __LINE__))

static void must(const char *condition, int line)
{
    fprintf(stderr, "commands_set_up.c:%d: not %s: %s\n", line, condition, strerror(errno));
    exit(1);
}

/* -- commands */

static int answer_to(struct event_channel *channel, int fd, const void *bytes, size_t length)
{
    errno = ucma_write(channel, fd, bytes, length);
    return errno ? -1 : 0;
}

int say_with(struct event_channel *channel, int fd, uint32_t command, const void *in, size_t length, uint16_t room)
{
    struct {
        struct ucma_header header;
        uint8_t in[sizeof(struct ucma_connect) + sizeof(struct ucma_write_event)];
    } whole = {.header = {command, (uint16_t)length, room}};
    memcpy(whole.in, in, length);
    return answer_to(channel, fd, &whole, sizeof whole.header + length);
}

int say_bytes(const void *bytes, size_t length)
{
    return answer_to(on.channel, on.fd, bytes, length);
}

/* -- addresses */

struct bytes ipv4(uint32_t address, uint16_t port)
{
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(address)};
    struct bytes bytes = {{0}};
    memcpy(bytes.at, &from, sizeof from);
    return bytes;
}

struct bytes ipv6(const char *address, uint16_t port)
{
    struct sockaddr_in6 from = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    struct bytes bytes = {{0}};
    MUST(inet_pton(AF_INET6, address, &from.sin6_addr) == 1);
    memcpy(bytes.at, &from, sizeof from);
    return bytes;
}

struct bytes ib(uint64_t service)
{
    struct {
        uint16_t family, pkey;
        uint32_t flow;
        uint8_t gid[16];
        uint64_t service, mask, scope;
    } from = {.family = AF_IB, .service = htobe64(service), .mask = UINT64_MAX};
    struct bytes bytes = {{0}};
    memcpy(bytes.at, &from, sizeof from);
    return bytes;
}

struct bytes family(uint16_t number)
{
    struct bytes bytes = {{0}};
    memcpy(bytes.at, &number, sizeof number);
    return bytes;
}

bool bind_ip(uint32_t id, struct bytes address)
{
    struct ucma_bind_ip in = {.id = id};
    memcpy(in.address, address.at, sizeof in.address);
    return say_with(on.channel, on.fd, UCMA_BIND_IP, &in, sizeof in, 0);
}

bool bind_any(uint32_t id, struct bytes address, uint16_t size, uint16_t reserved)
{
    struct ucma_bind in = {.id = id, .size = size, .reserved = reserved};
    memcpy(in.address, address.at, sizeof in.address);
    return say_with(on.channel, on.fd, UCMA_BIND, &in, sizeof in, 0);
}

bool resolve_ip(uint32_t id, struct bytes source, struct bytes destination)
{
    struct ucma_resolve_ip in = {.id = id, .milliseconds = 2000};
    memcpy(in.source, source.at, sizeof in.source);
    memcpy(in.destination, destination.at, sizeof in.destination);
    return say_with(on.channel, on.fd, UCMA_RESOLVE_IP, &in, sizeof in, 0);
}

bool resolve_any(uint32_t id, struct bytes source, uint16_t source_size, struct bytes destination, uint16_t size,
                 uint32_t reserved)
{
    struct ucma_resolve_addr in = {
        .id = id, .milliseconds = 2000, .source_size = source_size, .destination_size = size, .reserved = reserved};
    memcpy(in.source, source.at, sizeof in.source);
    memcpy(in.destination, destination.at, sizeof in.destination);
    return say_with(on.channel, on.fd, UCMA_RESOLVE_ADDR, &in, sizeof in, 0);
}

bool join_ip(uint32_t id, struct bytes group)
{
    struct ucma_join_ip in = {RESPONSE, .id = id};
    memcpy(in.address, group.at, sizeof in.address);
    return say_with(on.channel, on.fd, UCMA_JOIN_IP_MCAST, &in, sizeof in, 1024);
}

bool join_any(uint32_t id, struct bytes group, uint16_t size, uint16_t flags)
{
    struct ucma_join in = {RESPONSE, .id = id, .size = size, .flags = flags};
    memcpy(in.address, group.at, sizeof in.address);
    return say_with(on.channel, on.fd, UCMA_JOIN_MCAST, &in, sizeof in, 1024);
}

bool set_option(uint32_t id, uint32_t level, uint32_t name, const void *value, uint32_t length)
{
    return SAY(SET_OPTION, ucma_set_option, .id = id, .level = level, .name = name, .value = (uintptr_t)value,
               .length = length);
}

/* A connection with a number that another has already is a stale one. */
static uint32_t next_qpn = 0x1234;

bool connect_with(uint32_t id, uint8_t length, bool valid)
{
    return SAY(CONNECT, ucma_connect, .id = id,
               .parameters = {.qpn = next_qpn++, .private_length = length, .valid = valid, .retry_count = 7});
}

bool accept_with(uint32_t id, uint8_t length)
{
    return SAY(ACCEPT, ucma_accept, .id = id, .uid = id,
               .parameters = {.qpn = next_qpn++, .private_length = length, .valid = true});
}

bool confirm(uint32_t id)
{
    return SAY(ACCEPT, ucma_accept, .id = id);
}

bool reject_with(uint32_t id, uint8_t length, uint8_t reason)
{
    return SAY(REJECT, ucma_reject, .id = id, .private_length = length, .reason = reason);
}

/* -- identifiers */

/* The next event of that kind: a command that was refused before may have sent its peer an event. */
static uint32_t take_event(enum rdma_cm_event_type kind)
{
    do {
        MUST(!SAY(GET_EVENT, ucma_get_event, RESPONSE));
    } while (on.answer.event.event != kind);
    return on.answer.event.id;
}

static uint32_t make(uint16_t space)
{
    uint8_t type = space == RDMA_PS_TCP ? IBV_QPT_RC : IBV_QPT_UD;
    MUST(!SAY(CREATE_ID, ucma_create_id, RESPONSE, .space = space, .qp_type = type));
    return on.answer.id.id;
}

static uint32_t make_bound(uint16_t space, uint32_t address, uint16_t port)
{
    uint32_t id = make(space);
    MUST(!bind_ip(id, ipv4(address, port)));
    return id;
}

static uint32_t make_listener(uint16_t space, uint16_t port)
{
    uint32_t id = make_bound(space, INADDR_LOOPBACK, port);
    MUST(!SAY(LISTEN, ucma_valued, .id = id, .value = 8));
    return id;
}

static uint32_t make_resolved(uint16_t space, uint16_t port)
{
    uint32_t id = make(space);
    MUST(!resolve_ip(id, family(0), ipv4(INADDR_LOOPBACK, port)));
    MUST(take_event(RDMA_CM_EVENT_ADDR_RESOLVED) == id);
    return id;
}

static uint32_t make_routed(uint16_t space, uint16_t port)
{
    uint32_t id = make_resolved(space, port);
    MUST(!SAY(RESOLVE_ROUTE, ucma_valued, .id = id, .value = 2000));
    MUST(take_event(RDMA_CM_EVENT_ROUTE_RESOLVED) == id);
    return id;
}

/* The passive end of a request of the active one. */
static uint32_t ask(uint16_t space, uint16_t port, uint32_t *active)
{
    *active = make_routed(space, port);
    MUST(!connect_with(*active, 0, true));
    return take_event(RDMA_CM_EVENT_CONNECT_REQUEST);
}

uint32_t make_idle(void)
{
    return make(RDMA_PS_TCP);
}

uint32_t make_asking(void)
{
    uint32_t active;
    ask(RDMA_PS_TCP, PORT_LISTENED, &active);
    return active;
}

enum { REJECTED_BY_PROGRAM = 28 }; /* IB_CM_REJ_CONSUMER_DEFINED */

uint32_t make_rejected(void)
{
    uint32_t active, passive = ask(RDMA_PS_TCP, PORT_LISTENED, &active);
    MUST(!reject_with(passive, 0, REJECTED_BY_PROGRAM));
    MUST(take_event(RDMA_CM_EVENT_REJECTED) == active);
    return active;
}

uint32_t share_port(uint16_t port)
{
    enum { ROOM = 64, SHARES = 1 };
    for (unsigned i = 0;; i++) {
        uint32_t id = make(RDMA_PS_TCP);
        MUST(!set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &(int){SHARES}, sizeof(int)));
        if (i == ROOM)
            return id;
        MUST(!bind_ip(id, ipv4(INADDR_LOOPBACK, port)));
    }
}

uint32_t take_all_ports(void)
{
    uint32_t id;
    enum log_level before = (enum log_level)log_threshold;
    log_threshold = LOG_NONE; /* the bind that finds no port left logs nothing */
    do {
        id = make(RDMA_PS_UDP);
    } while (!bind_ip(id, ipv4(INADDR_ANY, 0)));
    log_threshold = (int)before;
    return id;
}

static void make_connections(void)
{
    uint32_t gone;
    on.passive = ask(RDMA_PS_TCP, PORT_LISTENED, &on.active);
    MUST(!accept_with(on.passive, 0));
    MUST(take_event(RDMA_CM_EVENT_CONNECT_RESPONSE) == on.active);
    MUST(!confirm(on.active));
    take_event(RDMA_CM_EVENT_ESTABLISHED);
    on.requested = ask(RDMA_PS_TCP, PORT_LISTENED, &gone);
    on.withdrawn = ask(RDMA_PS_TCP, PORT_LISTENED, &gone);
    MUST(!SAY(DESTROY_ID, ucma_named, RESPONSE, .id = gone));
    on.datagram_requested = ask(RDMA_PS_UDP, PORT_DATAGRAMS, &gone);
}

static void open_channels(void)
{
    MUST((on.fd = event_channel_open(O_CLOEXEC)) >= 0);
    MUST((on.channel = event_channel_find(on.fd)));
    MUST((on.other_fd = event_channel_open(O_CLOEXEC)) >= 0);
    MUST((on.other_channel = event_channel_find(on.other_fd)));
}

static void make_elsewhere(void)
{
    struct ucma_create_id in = {RESPONSE, .space = RDMA_PS_TCP, .qp_type = IBV_QPT_RC};
    MUST(!say_with(on.other_channel, on.other_fd, UCMA_CREATE_ID, &in, sizeof in, sizeof on.answer));
    on.elsewhere = on.answer.id.id;
}

void commands_set_up(void)
{
    open_channels();
    make_elsewhere();
    on.idle = make(RDMA_PS_TCP);
    on.idle_ipoib = make(RDMA_PS_IPOIB);
    on.idle_datagram = make(RDMA_PS_UDP);
    on.unbound = make_bound(RDMA_PS_UDP, INADDR_ANY, 0);
    on.bound = make_bound(RDMA_PS_TCP, INADDR_LOOPBACK, 0);
    on.listening = make_listener(RDMA_PS_TCP, PORT_LISTENED);
    make_listener(RDMA_PS_UDP, PORT_DATAGRAMS);
    on.resolved = make_resolved(RDMA_PS_TCP, PORT_LISTENED);
    on.routed = make_routed(RDMA_PS_TCP, PORT_LISTENED);
    on.datagram_routed = make_routed(RDMA_PS_UDP, PORT_DATAGRAMS);
    on.datagram_bound = make_bound(RDMA_PS_UDP, INADDR_LOOPBACK, 0);
    MUST(!join_ip(on.datagram_bound, ipv4(0xe0000105, 0)));
    on.membership = on.answer.id.id;
    take_event(RDMA_CM_EVENT_MULTICAST_JOIN);
    make_connections();
}

void commands_tear_down(void)
{
    event_channel_put(on.channel);
    event_channel_put(on.other_channel);
    event_channel_close(on.channel, on.fd);
    event_channel_close(on.other_channel, on.other_fd);
    close(on.fd);
    close(on.other_fd);
}
