/* Event channels and identifiers in each state, for commands that are refused (commands_test.c). A program of librdmacm
 * is this test itself: it writes the commands that the library would, and those that the library can't. */
#pragma once

#include <rdma/rdma_cma.h>

#include "abi/ucma/event_channel.h"
#include "abi/ucma/ucma.h"
#include "calls/ucma_layout.h"

enum { PORT_LISTENED = 7174, PORT_DATAGRAMS = 7175, PORT_SHARED = 7176, NO_SUCH = 999999 };

struct program {
    int fd, other_fd;
    struct event_channel *channel, *other_channel;
    uint32_t idle, idle_ipoib, idle_datagram, unbound, bound, listening, resolved, routed, other_routed;
    uint32_t active, passive;      /* an established connection */
    uint32_t requested, withdrawn; /* passive ends: to be answered; of a peer that gave up */
    uint32_t datagram_bound, datagram_requested, datagram_routed;
    uint32_t elsewhere;  /* of the other channel */
    uint32_t membership; /* of datagram_bound */
    union {
        struct ucma_id id;
        struct ucma_reported reported;
        struct ucma_event_response event;
        struct ucma_route_response route;
        struct ucma_qp_attr_response attributes;
        uint8_t bytes[1024];
    } answer;
};

extern struct program on;

void commands_set_up(void);
void commands_tear_down(void);

/* One more that is idle; an active end that waits for its answer. */
uint32_t make_idle(void);
uint32_t make_asking(void);
uint32_t make_rejected(void); /* by its peer */

/* One more that may share its port, where as many do as the host's table has room for; one more, of a port space that
 * has no free port. */
uint32_t share_port(uint16_t);
uint32_t take_all_ports(void);

/* Writes a command to the channel, as write(2): 0, or -1 and errno. */
int say_with(struct event_channel *, int fd, uint32_t command, const void *in, size_t length, uint16_t room);

/* Bytes as they are. */
int say_bytes(const void *, size_t);

/* A command of that number, whose layout has these members; true: it is refused. */
#define SAY(number, layout, ...)                                                                                       \
    (say_with(on.channel, on.fd, UCMA_##number, &(struct layout){__VA_ARGS__}, sizeof(struct layout), 1024) != 0)
#define RESPONSE .response = (uintptr_t)&on.answer

/* The bytes of an address, as members of a command. */
struct bytes {
    uint8_t at[UCMA_ADDRESS];
};
struct bytes ipv4(uint32_t address, uint16_t port);
struct bytes ipv6(const char *address, uint16_t port);
struct bytes ib(uint64_t service);
struct bytes family(uint16_t);

/* Commands with addresses: true: it is refused. */
bool bind_ip(uint32_t id, struct bytes);
bool bind_any(uint32_t id, struct bytes, uint16_t size, uint16_t reserved);
bool resolve_ip(uint32_t id, struct bytes source, struct bytes destination);
bool resolve_any(uint32_t id, struct bytes source, uint16_t source_size, struct bytes destination, uint16_t size,
                 uint32_t reserved);
bool join_ip(uint32_t id, struct bytes group);
bool join_any(uint32_t id, struct bytes group, uint16_t size, uint16_t flags);
bool set_option(uint32_t id, uint32_t level, uint32_t name, const void *value, uint32_t length);

/* The same calls, where the private data has `length` bytes. */
bool connect_with(uint32_t id, uint8_t length, bool valid);
bool accept_with(uint32_t id, uint8_t length);
bool confirm(uint32_t id);
bool reject_with(uint32_t id, uint8_t length, uint8_t reason);
