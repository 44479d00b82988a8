/* The sending side of softverbs ping: a socket from which RoCEv2 datagrams of any kind leave unfragmented, and on which
 * hosts and routers say what kept one from arriving (ICMP). No privilege is needed. */
#pragma once

#include <arpa/inet.h>
#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "wire/datagram.h"

struct addrinfo;

enum { PING_ADDRESS_MAX = INET6_ADDRSTRLEN + IF_NAMESIZE };

struct ping_wire {
    int fd;
    bool ipv6;
    char interface[IF_NAMESIZE];
    unsigned mtu; /* of the interface */
    struct sockaddr_storage to;
    socklen_t to_length;
    struct datagram_route route;
    char here[PING_ADDRESS_MAX], there[PING_ADDRESS_MAX];
};

/* The error that kept a datagram from arriving. */
struct ping_trouble {
    int error;                   /* ECONNREFUSED, EMSGSIZE, EHOSTUNREACH, ... */
    unsigned mtu;                /* with EMSGSIZE: what would pass */
    char from[PING_ADDRESS_MAX]; /* the host that says so; "" is this host */
};

/* Opens a socket to the address by this interface, or with NULL by the route's. 0, or errno and a sentence. */
int ping_wire_open(struct ping_wire *, const struct addrinfo *, const char *interface, char *why, size_t why_size);
void ping_wire_close(struct ping_wire *);

/* Sends the packet, without any sign whether it leaves or arrives. */
void ping_wire_send(struct ping_wire *, const struct packet *);

/* The next error that has been reported; false: no error yet. The socket has POLLERR while an error waits. */
bool ping_wire_trouble(struct ping_wire *, struct ping_trouble *);

/* The number of bytes of an IP packet around a payload of this opcode. */
unsigned ping_wire_overhead(const struct ping_wire *, uint8_t opcode);
