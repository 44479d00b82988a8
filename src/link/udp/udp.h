/* The way to other hosts: RoCEv2 datagrams on UDP port 4791 of one interface (RoCEv2 annex, A17.3).
 *
 * A port has one receiving socket for each IP version, bound to the interface. Other processes of the user share them
 * (SO_REUSEPORT), and the kernel hands a datagram to any one of them, so a datagram that arrives may be for a queue
 * pair of another process; the caller forwards it, and that process prefers later ones from its sender (udp_prefer).
 * Sending sockets have separate source ports, over which queue pairs are spread as flows. Unlike the links inside the
 * host, this link loses, repeats and reorders.
 *
 * Needs no privilege. Nothing listens unless a user named the interface. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bucket.h"
#include "link/link.h"
#include "wire/datagram.h"

struct udp_port;

/* The addresses of a link's packets, and how they are sent. */
struct udp_route {
    uint8_t source[16], destination[16]; /* GIDs; ::ffff:a.b.c.d is IPv4 */
    uint8_t traffic_class;
    uint8_t hop_limit; /* 0: the limit of the kernel's route */
    uint32_t flow;     /* links with the same flow have the same source port, one of a few */
    bool apart; /* send from a source port that no flow uses, so that a peer that pins this port (udp_prefer) receives
                   nothing else with it. Not to be rerouted. */
};

/* A datagram that has arrived. */
struct udp_arrival {
    const struct datagram_route *route;
    const struct packet *packet; /* with its GRH, as a UD receive shows it */
    unsigned interface;          /* where it arrived: the index of the port's interface, never 0 */
    bool congested;              /* a router marked it (ECN: CE) */
};

/* A datagram that has arrived and is not a packet. */
struct udp_refusal {
    const struct datagram_route *route;
    uint8_t traffic_class, hop_limit;
    const uint8_t *bytes; /* as they arrived */
    uint32_t length;
    enum wire_fault fault;
};

/* Takes a datagram; returns true if this process should get later datagrams from that port at a separate socket. */
typedef bool udp_take(void *context, const struct udp_arrival *);
typedef void udp_drop(void *context, const struct udp_refusal *);

/* The index of the interface. */
unsigned udp_interface(const struct udp_port *);

/* Opens the port: 0, or errno and a sentence: no such interface, port 4791 taken by another user or program. */
int udp_open(struct udp_port **, const char *interface, char *why, size_t why_size);
/* Opens a port that only sends, through the interface of this index, for a process that sends on behalf of one that
 * has ended. 0, ENOMEM. */
int udp_open_last(struct udp_port **, unsigned interface);
/* Lets the port receive what is sent to UDP port 4791 over any interface, unless a port of udp_open is there; one that
 * is opened later gets all from then on. To be called again and again: the sockets of a process that ends are closed
 * one by one. */
void udp_listen_last(struct udp_port *);
/* Sets a listening socket that is closed with the port, or -1. Connections to it are accepted and closed: other
 * processes connect only to ask for its owner (ipc/ask/claim.h). */
void udp_keep(struct udp_port *, int fd);
/* Closes the port, whose links the caller does not use any more. */
void udp_close(struct udp_port *);
/* Closes the descriptors in the child of a fork; datagrams sent later are lost. */
void udp_abandon(struct udp_port *);

/* Readable when something has arrived, or when a full link has room again. */
int udp_fd(const struct udp_port *);

/* Reports that a thread that slept on udp_fd has found it readable: the next udp_receive asks all sockets when it
 * finds nothing at the socket of the last datagram. Thread-safe. */
void udp_woken(struct udp_port *);

/* Hands at most about `budget` datagrams that have arrived to `take`, or to `drop`; returns how many. Everything
 * that they get is valid during the call only; they may send. One caller at a time (the owner's progress lock).
 * Never blocks. */
unsigned udp_receive(struct udp_port *, udp_take *, udp_drop *, void *context, unsigned budget);

/* Makes a link, which only sends. Thread-safe. NULL: no memory, no socket. The operation `close` ends it. */
struct link *udp_connect(struct udp_port *, const struct udp_route *);
/* Gives the link another source port, and so, with luck, another path, after packets got no answer. */
void udp_reroute(struct link *);

/* Gives the link this source port, which a reroute does not change. Links of one port number share it. 0; EBUSY where
 * links of this process have as many other numbers as there may be (4 for each IP version); or the errno of bind(2). */
int udp_pin(struct link *, uint16_t source_port);

/* Makes the kernel give us, and no other process, the datagrams from this address and port to that address of ours.
 * The latest few such routes are kept, and a new one is made every 10 ms at most: it costs a dozen system calls, and
 * a sender that makes up ports could ask for any number. Like udp_receive: under the owner's progress lock. */
void udp_prefer(struct udp_port *, const struct datagram_route *, nanos now);

/* Writes the answer (ICMP) of a host or router in the last half a minute to a datagram from the port to this
 * destination: "10.77.0.1 answered (ICMP type 3, code 3): port unreachable, ...". False: nothing answered, and the
 * text is empty. An answer may be forged. Thread-safe; changes errno. */
bool udp_icmp_describe(struct udp_port *, const uint8_t destination[16], char *text, size_t size);

/* Returns true if such an answer, read since then, says that no program of the destination takes datagrams (port
 * unreachable). */
bool udp_icmp_is_closed(struct udp_port *, const uint8_t destination[16], nanos since);

/* The source port that the link uses now. */
uint16_t udp_source_port(const struct link *);

/* Multicast. 0 or errno: no socket for one more group, EAFNOSUPPORT for an IP version that the host does not have.
 * Joins are not counted. Like udp_receive: under the owner's progress lock. */
int udp_join(struct udp_port *, const uint8_t group[16]);
void udp_leave(struct udp_port *, const uint8_t group[16]);
