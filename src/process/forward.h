/* Packets that arrived from a network at the wrong process of the host, and how they reach the right one. */
#pragma once

#include "process/process.h"

enum { FORWARD_ARRIVAL = 8 }; /* bytes before the GRH of a forwarded frame */

/* The index of the interface where the packet arrived, from these bytes. */
unsigned forward_interface(const uint8_t arrival[FORWARD_ARRIVAL]);

/* Forwards a datagram that the kernel gave us to the process of this host that owns this number. False: no other
 * process owns it. Under process->progress. */
bool forward_datagram(struct process *, const struct udp_arrival *, uint32_t number);
/* Forwards a datagram to this peer; false: the link has no room, and the datagram is lost. */
bool forward_to(struct peer *, const struct udp_arrival *);

/* Makes the kernel give us this sender's datagrams directly, once one was forwarded to us. Under process->progress. */
void forward_prefer_sender(struct process *, const uint8_t arrival[FORWARD_ARRIVAL], const struct packet *);
/* Calls forward_prefer_sender, except for a program's datagrams, whose sender may be any. */
void forward_prefer(struct process *, const uint8_t arrival[FORWARD_ARRIVAL], const struct packet *);
