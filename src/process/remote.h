/* Packets that came over a network to the wrong process of the host, and how they reach the right one. */
#ifndef PROCESS_REMOTE_H
#define PROCESS_REMOTE_H

#include "process/process.h"

enum { REMOTE_ARRIVAL = 8 }; /* bytes before the GRH of a frame that was passed on */

/* Where it had arrived, as these bytes say. */
unsigned remote_interface(const uint8_t arrival[REMOTE_ARRIVAL]);

/* The kernel gave us a datagram that is for another process of this host, the owner of this number: hands it on.
 * False: nobody else owns it. Under process->progress. */
bool remote_forward(struct process *, const struct udp_arrival *, uint32_t number);
/* Hands it to this process; false: there is no room on the way, and it is lost. */
bool remote_forward_to(struct peer *, const struct udp_arrival *);

/* We are that other process: the kernel shall give us directly what comes from there. Under process->progress. */
void remote_prefer_sender(struct process *, const uint8_t arrival[REMOTE_ARRIVAL], const struct packet *);
/* The same, but not for datagrams of programs, which may come from anywhere. */
void remote_prefer(struct process *, const uint8_t arrival[REMOTE_ARRIVAL], const struct packet *);

#endif
