/* Packets that came over a network to the wrong process of the host, and how they reach the right one. */
#ifndef PROCESS_FORWARD_H
#define PROCESS_FORWARD_H

#include "process/process.h"

enum { FORWARD_ARRIVAL = 8 }; /* bytes before the GRH of a frame that was passed on */

/* Where it had arrived, as these bytes say. */
unsigned forward_interface(const uint8_t arrival[FORWARD_ARRIVAL]);

/* The kernel gave us a datagram that is for another process of this host, the owner of this number: passes it on.
 * False: no other process owns it. Under process->progress. */
bool forward_datagram(struct process *, const struct udp_arrival *, uint32_t number);
/* Hands it to this process; false: there is no room on the way, and it is lost. */
bool forward_to(struct peer *, const struct udp_arrival *);

/* We are that other process: the kernel shall give us directly what comes from there. Under process->progress. */
void forward_prefer_sender(struct process *, const uint8_t arrival[FORWARD_ARRIVAL], const struct packet *);
/* The same, but not for datagrams of programs, which may come from anywhere. */
void forward_prefer(struct process *, const uint8_t arrival[FORWARD_ARRIVAL], const struct packet *);

#endif
