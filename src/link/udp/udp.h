/* The way to other hosts: RoCEv2 datagrams on UDP port 4791 of one interface (RoCEv2 annex, A17.3).
 *
 * A port has one receiving socket for each IP version, bound to the interface. Other processes of the user share them
 * (SO_REUSEPORT), and the kernel hands a datagram to any one of them, so a datagram that arrives may be for a queue
 * pair of another process; the caller passes it on, and that process prefers later ones from there (udp_prefer).
 * Sending sockets have separate source ports, over which queue pairs are spread as flows. Unlike the links inside the
 * host this one loses, repeats and reorders.
 *
 * Needs no privilege. Nothing listens unless a user named the interface. */
#ifndef LINK_UDP_UDP_H
#define LINK_UDP_UDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bucket.h"
#include "link/link.h"
#include "wire/datagram.h"

struct udp_port;

/* Where the packets of a link go, and how. */
struct udp_route {
    uint8_t source[16], destination[16]; /* GIDs; ::ffff:a.b.c.d is IPv4 */
    uint8_t traffic_class;
    uint8_t hop_limit; /* 0: that of the kernel's route */
    uint32_t flow;     /* links with the same are sent from the same source port, one of a few */
    bool apart; /* send from a source port that no flow uses, so that a peer that pins this port (udp_prefer) receives
                   nothing else with it. Not to be rerouted. */
};

/* A datagram that has arrived. */
struct udp_arrival {
    const struct datagram_route *route;
    const struct packet *packet; /* with its GRH, as a UD receive shows it */
    unsigned interface;          /* where it has arrived: the index of the port's interface, never 0 */
    bool congested;              /* a router marked it (ECN: CE) */
};

/* A datagram that has arrived and is no packet. */
struct udp_refusal {
    const struct datagram_route *route;
    uint8_t traffic_class, hop_limit;
    const uint8_t *bytes; /* as they came */
    uint32_t length;
    enum wire_fault fault;
};

/* Returns true if later datagrams from that port had better come to this process, and go to a socket of their own. */
typedef bool udp_take(void *context, const struct udp_arrival *);
typedef void udp_drop(void *context, const struct udp_refusal *);

/* The index of the interface. */
unsigned udp_interface(const struct udp_port *);

/* Opens the port: 0, or errno and a sentence: no such interface, port 4791 taken by another user or program. */
int udp_open(struct udp_port **, const char *interface, char *why, size_t why_size);
/* For a process that sends on behalf of one that has ended: a port that only sends, through the interface of this
 * index. 0, ENOMEM. */
int udp_open_last(struct udp_port **, unsigned interface);
/* From now on it gets what comes to UDP port 4791 over any interface, unless a port is there that was opened by
 * udp_open. If there is none, and one comes later, that gets all. To be called again and again: the sockets of a
 * process that ends are closed one by one. */
void udp_listen_last(struct udp_port *);
/* A listening socket that is to be closed with the port, -1: none. Connections to it are accepted and closed: other
 * processes connect only to ask for its owner (ipc/ask/claim.h). */
void udp_keep(struct udp_port *, int fd);
/* Its links may not be in use any more. */
void udp_close(struct udp_port *);
/* In the child of a fork: closes the descriptors; datagrams sent later are lost. */
void udp_abandon(struct udp_port *);

/* Readable when something has arrived, or when links have room again that had none. */
int udp_fd(const struct udp_port *);

/* A thread that slept on it has found it readable: the next udp_receive asks all sockets when it finds nothing at the
 * socket of the last datagram. Thread-safe. */
void udp_woken(struct udp_port *);

/* Hands at most about `budget` datagrams that have arrived to `take`, or to `drop`; returns how many. Everything that
 * they get is valid during the call only; both may send. One caller at a time (the owner's progress lock). Never
 * blocks.
 */
unsigned udp_receive(struct udp_port *, udp_take *, udp_drop *, void *context, unsigned budget);

/* A link that only sends: receive finds nothing. Thread-safe. NULL: no memory, no socket. Closed with its close. */
struct link *udp_connect(struct udp_port *, const struct udp_route *);
/* From now on this link uses another source port, and so, with luck, another path: for what got no answer. */
void udp_reroute(struct link *);

/* From now on the kernel gives us, and no other process, the datagrams from this address and port to that address of
 * ours. The latest few of these are kept, and a new one made each 10 ms at most: it costs a dozen system calls, and a
 * sender that makes up ports could ask for any number. Like udp_receive: under the owner's progress lock. */
void udp_prefer(struct udp_port *, const struct datagram_route *, nanos now);

/* Writes the answer (ICMP) of a host or router in the last half a minute to a datagram from the port to this
 * destination: "10.77.0.1 answered (ICMP type 3, code 3): port unreachable, ...". False: nothing, and the text is
 * empty. It may be forged. Thread-safe; changes errno. */
bool udp_icmp_describe(struct udp_port *, const uint8_t destination[16], char *text, size_t size);

/* The source port that it uses now. */
uint16_t udp_source_port(const struct link *);

/* Multicast. 0 or errno: no socket for one more group, EAFNOSUPPORT for one of an IP version that the host has not.
 * Joins are not counted. Like udp_receive: under the owner's progress lock. */
int udp_join(struct udp_port *, const uint8_t group[16]);
void udp_leave(struct udp_port *, const uint8_t group[16]);

#endif
