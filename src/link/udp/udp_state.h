/* The members of a port; for udp*.c only.
 *
 * Locks: a flow's lock is taken from a link's begin to its end; the port's lock inside it or alone. Receiving needs
 * none: there is one caller. */
#ifndef LINK_UDP_UDP_STATE_H
#define LINK_UDP_UDP_STATE_H

#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "base/lock.h"
#include "link/udp/udp.h"
#include "link/udp/udp_icmp.h"
#include "wire/grh.h"

enum {
    UDP_FAMILIES = 2,      /* IPv4, IPv6 */
    UDP_FLOWS = 8,         /* sending sockets for each, for queue pairs */
    UDP_APART = UDP_FLOWS, /* and one for datagrams of no queue pair */
    UDP_SENDING,
    UDP_BATCH = 65000, /* most bytes of one send; the kernel's limit is 65535 with all headers */
    UDP_SEGMENTS = 64, /* most datagrams of one send (UDP_MAX_SEGMENTS of older kernels) */
    UDP_DATAGRAM = 4096 + WIRE_HEADERS_MAX + DATAGRAM_TRAILER_MAX,
    UDP_PREFERRED = 32,  /* senders whose datagrams have a separate socket */
    UDP_RECEIVES = 8,    /* messages of one recvmmsg */
    UDP_RECEIVE = 65536, /* bytes of each: many datagrams that the kernel has joined (UDP_GRO) */
    UDP_GUESSES = 16,
    UDP_ECN_CAPABLE = 2, /* routers may mark our packets instead of dropping them (ECN) */
};

union udp_address {
    struct sockaddr any;
    struct sockaddr_in ipv4;
    struct sockaddr_in6 ipv6;
};

struct udp_link;

/* A sending socket and the datagrams that wait to leave together. All have the same route and, but for the last, the
 * same length. */
struct udp_flow {
    int fd; /* -1: not made yet */
    uint16_t source_port;
    struct lock lock;
    const struct udp_link *link; /* whose datagrams are in the batch */
    uint8_t *bytes;              /* UDP_BATCH, and behind them UDP_DATAGRAM for the one that waits */
    uint32_t used, count, segment;
    bool closed; /* a shorter datagram is the last */
    /* udp_connected.c: */
    const struct udp_link *connected; /* whose destination the socket is connected to; NULL: none */
    uint16_t next;                    /* the identification of the next send; not connected: 0 */
    const struct udp_link *last;      /* that began a batch, */
    uint32_t streak, threshold;       /* so many in a row, and how many it takes until the socket is connected */
    /* udp_send.c: */
    bool stuck;  /* the socket has no room, the batch waits, */
    bool awaits; /* and the port's descriptor says when it has some: once, and then udp_flush_stuck comes */
    struct {     /* a datagram that was promised room and does not join the batch, which is stuck: the next batch */
        const struct udp_link *link;
        uint32_t length; /* 0: there is none */
    } waiting;
};

/* A socket that is connected to a sender, which the kernel prefers to those that are not. */
struct udp_preferred {
    int fd; /* -1: none */
    uint8_t source[16], destination[16];
    uint16_t source_port;
};

struct udp_group;

/* A sender whose messages come in a row, and how many have. */
struct udp_steady {
    uint8_t source[16];
    uint16_t source_port;
    unsigned messages;
};

/* The identification that the next message from a source port most likely begins with. */
struct udp_guess {
    uint16_t source_port, next;
};

struct udp_port {
    char interface[IF_NAMESIZE]; /* that receiving sockets are bound to; empty: none (udp_open_last) */
    unsigned index;              /* of the interface */
    int epoll;
    int kept; /* the owner's listening socket, closed with ours; -1: none */
    int receiving[UDP_FAMILIES];
    int hot;             /* the socket where something came last; -1: none */
    unsigned hot_rounds; /* for which only it was looked at */
    atomic_bool woken;   /* a thread was woken, for any socket (udp_woken) */
    int wanted;          /* messages to ask a socket for next; 0: one, as the last look found nothing */
    struct udp_steady steady;
    struct udp_guess guesses[UDP_GUESSES]; /* by source port */
    struct udp_preferred preferred[UDP_PREFERRED];
    unsigned next_preferred; /* the next to be replaced */
    struct bucket preferring;
    LIST_HEAD(, udp_group) groups;
    struct lock lock;
    struct udp_flow flows[UDP_FAMILIES][UDP_SENDING];
    atomic_bool abandoned;
    atomic_bool no_segments; /* the interface refuses UDP_SEGMENT: datagrams go one by one */
    struct udp_buffers *buffers;
    struct udp_icmp icmp; /* to what the flows sent */
};
_Static_assert(UDP_FAMILIES *UDP_SENDING == UDP_ICMP_SOCKETS, "a place for each sending socket");

struct udp_link {
    struct link link;
    struct udp_port *port;
    struct udp_flow *_Atomic flow;
    struct udp_route route;
    struct datagram_route wire; /* source port: the flow's */
    union udp_address to;
    bool ipv6, multicast;
};

/* udp_socket.c: a socket address for the GID; a receiving socket that is bound to an address, not yet watched (-1 and
 * errno); from now on udp_receive reads it. */
void udp_put_address(const struct udp_port *, union udp_address *, const uint8_t gid[16], uint16_t port);
int udp_make_receiving(const struct udp_port *, const union udp_address *);
bool udp_watch(const struct udp_port *, int fd);

static inline socklen_t udp_address_length(const union udp_address *address)
{
    return address->any.sa_family == AF_INET6 ? sizeof address->ipv6 : sizeof address->ipv4;
}

/* udp_groups.c: closes the sockets of all groups. */
void udp_leave_all(struct udp_port *);

/* udp_prefer.c: as udp_prefer, but only while there is a place for one more. */
void udp_prefer_steady(struct udp_port *, const struct datagram_route *);

/* udp_receive.c */
struct udp_buffers *udp_buffers_create(void);
void udp_buffers_destroy(struct udp_buffers *);

/* udp_send.c: the flow's socket, made when it was not there; false: it can't be. */
bool udp_flow_open(struct udp_port *, bool ipv6, unsigned index);
/* udp_send.c: some socket has room again. */
void udp_flush_stuck(struct udp_port *);

/* udp_connected.c, all under the flow's lock: a batch of this link is about to begin; the socket is not connected any
 * more; the link is about to end. */
void udp_settle(struct udp_flow *, const struct udp_link *);
void udp_disconnect(struct udp_flow *);
void udp_forget_link(struct udp_flow *, const struct udp_link *);
/* The socket is closed, and its number may be another's. */
void udp_forget_connection(struct udp_flow *);

/* Returns true if the GID stands for an IPv4 address. */
static inline bool udp_is_ipv4(const uint8_t gid[16])
{
    return grh_is_ipv4(gid);
}

#endif
