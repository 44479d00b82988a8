/* What packets that came over a network need beyond those of the host. */
#ifndef VERBS_REMOTE_H
#define VERBS_REMOTE_H

#include "verbs/object.h"

/* May this packet be for the queue pair: does it come over the way that its address vector names (IBA 9.6.1.5)? A
 * packet of the host has no GRH unless it is a datagram. Under qp->lock. */
bool remote_is_peer(const struct qp *, const struct packet *);

/* Is the queue pair's device one that its user has put on a network, if the packet comes from there? Every process of
 * the host is handed what another receives for it, and a device that serves the host only must not be reached by that.
 */
bool remote_may_reach(const struct qp *, bool from_network);

/* A router marked a packet for this queue pair: tells the sender, not too often (RoCEv2 annex, A17.9.3). Under
 * qp->lock.
 */
void remote_notify(struct qp *, nanos now);

enum { REMOTE_PORT = 4 }; /* bytes before the GRH of a frame that was passed on */

/* The kernel gave us a datagram that is for another process of this host, the owner of this number: hands it on.
 * False: nobody else owns it. Under process->progress. */
bool remote_pass_on(struct process *, const struct udp_arrival *, uint32_t number);
/* Hands it to this process. */
void remote_hand_over(struct peer *, const struct udp_arrival *);

/* We are that other process: the kernel shall give us directly what comes from there. `port` are those bytes. Under
 * process->progress. */
void remote_prefer_sender(struct process *, const uint8_t port[REMOTE_PORT], const struct packet *);
/* The same, but not for datagrams of programs, which may come from anywhere. */
void remote_prefer(struct process *, const uint8_t port[REMOTE_PORT], const struct packet *);

#endif
