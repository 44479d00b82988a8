/* The members of a port; for udp*.c only.
 *
 * Locks: a flow's lock is taken from a link's begin to its end; the port's lock inside it or alone. Receiving needs
 * no lock: it has one caller. */
#pragma once

#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "base/descriptor.h"
#include "base/lock.h"
#include "link/udp/udp.h"
#include "link/udp/udp_icmp.h"
#include "wire/grh.h"

enum {
    UDP_FAMILIES = 2,      /* IPv4, IPv6 */
    UDP_FLOWS = 8,         /* sending sockets for each, for queue pairs */
    UDP_APART = UDP_FLOWS, /* one more, for datagrams of no queue pair */
    UDP_PINNED,            /* the first of those whose source ports programs have chosen */
    UDP_SENDING = UDP_PINNED + 4,
    UDP_BATCH = 65000, /* most bytes of one send; the kernel's limit is 65535 with all headers */
    UDP_SEGMENTS = 64, /* most datagrams of one send (UDP_MAX_SEGMENTS of older kernels) */
    UDP_DATAGRAM = 8928 /* of an EFA */ + WIRE_HEADERS_MAX + DATAGRAM_TRAILER_MAX,
    UDP_PREFERRED = 32,  /* senders whose datagrams have a separate socket */
    UDP_RECEIVES = 8,    /* messages of one recvmmsg */
    UDP_RECEIVE = 65536, /* bytes of each message: many datagrams that the kernel has joined (UDP_GRO) */
    UDP_GUESSES = 16,
    UDP_ECN_CAPABLE = 2, /* routers may mark our packets instead of dropping them (ECN) */
};

struct udp_link;

/* A sending socket and the datagrams that wait to leave together. All have the same route and, except the last, the
 * same length. */
struct udp_flow {
    int fd; /* -1: not made yet */
    uint16_t source_port;
    struct lock lock;
    const struct udp_link *link; /* whose datagrams are in the batch */
    uint8_t *bytes;              /* UDP_BATCH, then UDP_DATAGRAM for the one that waits */
    uint32_t used, count, segment;
    bool closed; /* the last datagram is shorter, so no more can join */
    /* udp_connected.c: */
    const struct udp_link *connected; /* whose destination the socket is connected to; or NULL */
    uint16_t next;                    /* the identification of the next send; not connected: 0 */
    const struct udp_link *last;      /* the link that began the last batch */
    uint32_t streak, threshold;       /* that link's batches in a row, and after how many the socket is connected */
    /* udp_send.c: */
    bool stuck;  /* the socket has no room, the batch waits */
    bool awaits; /* the port's descriptor reports room, once; then udp_flush_stuck is called */
    struct {     /* a datagram that was promised room but can't join the batch, which is stuck: the next batch */
        const struct udp_link *link;
        uint32_t length; /* 0: no datagram waits */
    } waiting;
};

/* A socket that is connected to a sender: the kernel prefers it to sockets that are not connected. */
struct udp_preferred {
    int fd; /* -1: not in use */
    uint8_t source[16], destination[16];
    uint16_t source_port;
};

struct udp_group;

/* A sender with several messages in a row, and their number. */
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
    char interface[IF_NAMESIZE]; /* the one that receiving sockets are bound to; empty: a port of udp_open_last */
    unsigned index;              /* of the interface */
    int epoll;
    int kept; /* the owner's listening socket, closed with ours; or -1 */
    int receiving[UDP_FAMILIES];
    int hot;             /* the socket that received last; or -1 */
    unsigned hot_rounds; /* rounds in which only `hot` was looked at */
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
    atomic_bool no_segments; /* the interface refuses UDP_SEGMENT: datagrams are sent one by one */
    struct udp_buffers *buffers;
    struct udp_icmp icmp; /* answers to what the flows sent */
};
_Static_assert(UDP_FAMILIES *UDP_SENDING == UDP_ICMP_SOCKETS, "a place for each sending socket");

struct udp_link {
    struct link link;
    struct udp_port *port;
    struct udp_flow *_Atomic flow;
    struct udp_route route;
    struct datagram_route wire; /* source port: the flow's */
    union udp_address to;
    uint32_t whole; /* bytes of a datagram that the interface sends in one packet */
    bool ipv6, multicast;
};

/* udp_socket.c: udp_put_address makes a socket address for the GID; udp_make_receiving a receiving socket that is
 * bound to an address, not yet watched (-1 and errno); udp_watch lets udp_receive read it. */
void udp_put_address(const struct udp_port *, union udp_address *, const uint8_t gid[16], uint16_t port);
int udp_make_receiving(const struct udp_port *, const union udp_address *);
bool udp_watch(const struct udp_port *, int fd);

static inline socklen_t udp_address_length(const union udp_address *address)
{
    return address->any.sa_family == AF_INET6 ? sizeof address->ipv6 : sizeof address->ipv4;
}

/* The address of all interfaces, with this port. */
static inline union udp_address udp_any_address(bool ipv6, uint16_t port)
{
    return ipv6 ? (union udp_address){.ipv6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)}}
                : (union udp_address){.ipv4 = {.sin_family = AF_INET, .sin_port = htons(port)}};
}

/* Sets an option of a socket. False: the kernel refuses, with errno. */
static inline bool udp_set(int fd, int level, int name, int value)
{
    return !setsockopt(fd, level, name, &value, sizeof value);
}

/* udp_groups.c: closes the sockets of all groups. */
void udp_leave_all(struct udp_port *);

/* udp_prefer.c: like udp_prefer, but only while a place is free. */
void udp_prefer_steady(struct udp_port *, const struct datagram_route *);

/* udp_receive.c: allocates the buffers for receiving; free(3) frees them. */
struct udp_buffers *udp_buffers_create(void);

/* udp_send.c: sends the batches that wait, after some socket has got room. */
void udp_flush_stuck(struct udp_port *);

/* udp_connected.c, all under the flow's lock: udp_settle, before a batch of this link begins; udp_disconnect, so
 * that the socket is not connected any more; udp_forget_link, before the link ends. */
void udp_settle(struct udp_flow *, const struct udp_link *);
void udp_disconnect(struct udp_flow *);
void udp_forget_link(struct udp_flow *, const struct udp_link *);
/* Forgets a connection whose socket is closed: its number may be another's. */
void udp_forget_connection(struct udp_flow *);
