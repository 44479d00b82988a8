/* What packets that came over a network need beyond those of the host. */
#ifndef VERBS_REMOTE_H
#define VERBS_REMOTE_H

#include "verbs/object.h"

/* May this packet be for the queue pair (IBA 9.6.1)? REASON_NONE, or why not. `interface` is where it came from a
 * network, directly or by way of another process; 0: it is of this host.
 *
 * What comes from a network must have come over the interface of the queue pair's device and to one of its addresses:
 * every process of the host is handed what another receives for it, so a device would else be reached from all networks
 * on which the user has one, or from a network although it serves the host only. (To which of its addresses is left
 * open, so that programs which answer from another one go on working.) A connection's packets must come over the way
 * that its address vector names; those of the host have no GRH. Under qp->lock. */
enum reason remote_refusal(const struct qp *, const struct packet *, unsigned interface);

/* A router marked a packet for this queue pair: tells the sender, not too often (RoCEv2 annex, A17.9.3). Under
 * qp->lock.
 */
void remote_notify(struct qp *, nanos now);

enum { REMOTE_ARRIVAL = 8 }; /* bytes before the GRH of a frame that was passed on */

/* Where it had arrived, as these bytes say. */
unsigned remote_interface(const uint8_t arrival[REMOTE_ARRIVAL]);

/* The kernel gave us a datagram that is for another process of this host, the owner of this number: hands it on.
 * False: nobody else owns it. Under process->progress. */
bool remote_pass_on(struct process *, const struct udp_arrival *, uint32_t number);
/* Hands it to this process; false: there is no room on the way, and it is lost. */
bool remote_hand_over(struct peer *, const struct udp_arrival *);

/* We are that other process: the kernel shall give us directly what comes from there. Under process->progress. */
void remote_prefer_sender(struct process *, const uint8_t arrival[REMOTE_ARRIVAL], const struct packet *);
/* The same, but not for datagrams of programs, which may come from anywhere. */
void remote_prefer(struct process *, const uint8_t arrival[REMOTE_ARRIVAL], const struct packet *);

#endif
