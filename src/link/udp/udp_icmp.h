/* The answers of hosts and routers to datagrams of a port (ICMP): the kernel puts them into the error queue of the
 * socket that sent (IP_RECVERR). For each of the latest few destinations the last answer is kept.
 *
 * Any host may forge such an answer, so it explains a failure and never causes one. Thread-safe, under any lock but
 * the innermost. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/lock.h"
#include "base/nanos.h"

enum { UDP_ICMP_KEPT = 16, UDP_ICMP_SOCKETS = 26, UDP_ICMP_TEXT = 192 };

/* A socket's address of either IP version. */
union udp_address {
    struct sockaddr any;
    struct sockaddr_in ipv4;
    struct sockaddr_in6 ipv6;
};

struct udp_icmp_error {
    uint8_t destination[16], from[16]; /* GIDs: the datagram's destination, and the host that answered */
    bool ipv6;
    uint8_t type, code; /* of ICMP, or of ICMPv6 */
    uint32_t mtu;       /* of the path, where the datagram was too long */
    nanos at;           /* when it was read; 0: no answer */
};

struct udp_icmp {
    struct lock lock;
    int sockets[UDP_ICMP_SOCKETS]; /* whose error queues get the answers */
    unsigned count;
    struct udp_icmp_error kept[UDP_ICMP_KEPT];
    unsigned next; /* the next to be replaced */
};

void udp_icmp_initialize(struct udp_icmp *);

/* Makes the kernel keep the answers to datagrams of this socket. */
void udp_icmp_add(struct udp_icmp *, int fd, bool ipv6);

/* Empties the error queue of a socket, or of all. True: something was there. Never blocks; changes errno. */
bool udp_icmp_take(struct udp_icmp *, int fd);
void udp_icmp_take_all(struct udp_icmp *);

/* Empties the error queue of a socket, and then keeps other threads from all queues until udp_icmp_release, as the
 * caller reads other messages from this one. */
void udp_icmp_hold(struct udp_icmp *, int fd);
void udp_icmp_release(struct udp_icmp *);

/* The last answer for this destination, if it was not read before `since`. */
bool udp_icmp_find(struct udp_icmp *, const uint8_t destination[16], nanos since, struct udp_icmp_error *);

/* Decodes a message of an error queue; false: it is not of ICMP. */
bool udp_icmp_read(struct msghdr *, struct udp_icmp_error *);

/* Writes an answer in words: "10.77.0.1 answered (ICMP type 3, code 3): port unreachable, ...". */
void udp_icmp_write(const struct udp_icmp_error *, char text[UDP_ICMP_TEXT]);
