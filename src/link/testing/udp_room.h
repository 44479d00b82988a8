/* A port for tests: on the loopback interface of a private network namespace, to which it sends what it receives. */
#pragma once

#include <stdbool.h>

#include "link/udp/udp.h"

enum { LARGEST = 12288, KEPT = 256 };

static const uint8_t ipv4[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}, ipv6[16] = {[15] = 1};
static const uint8_t ipv4_other[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 2};

/* The sends of the link: sendmsg and recvmsg replace the C library's. */
struct room_sends {
    bool no_room;    /* sockets have no room */
    bool no_copies;  /* the kernel returns no copies of what was sent */
    bool no_cutting; /* the interface can't cut up what is sent together */
    int next_error;  /* of the next send, once */
    int last_used;   /* the socket of the last send */
    unsigned count;
    unsigned addressed; /* those with an address: the socket is not connected, or learns the identification */
};
extern struct room_sends room_sends;

/* The datagrams that have arrived. */
struct room {
    struct udp_port *port;
    unsigned count, drops, wrong;
    enum wire_fault fault;
    uint32_t psns[KEPT], lengths[KEPT];
    uint16_t source_port;
    uint8_t grh[40];
    bool congested, wants;
    uint8_t noise[64]; /* of the last that was dropped */
    uint32_t refused;
};

int room_set_up(void **state);
int room_tear_down(void **state);
#define ROOM_TEST(name) cmocka_unit_test_setup_teardown(name, room_set_up, room_tear_down)

/* The byte at an offset of the payload of each packet. */
uint8_t room_pattern(uint32_t psn, uint32_t offset);
bool room_take(void *room, const struct udp_arrival *);
void room_drop(void *room, const struct udp_refusal *);
/* Receives until `count` have arrived in all. */
void room_receive(struct room *, unsigned count);
/* Receives until `drops` datagrams were dropped, or nothing arrives for long. */
void room_receive_drops(struct room *, unsigned drops);

struct link *room_connect(struct room *, const uint8_t gid[16], uint32_t flow);
/* Sends without asking for room, as for a datagram that is alone between begin and end. */
void room_push(struct link *, uint32_t psn, uint32_t length);
void room_send(struct link *, uint32_t psn, uint32_t length);
/* Sends a datagram of 100 bytes by itself. */
void room_send_one(struct link *, uint32_t psn);
