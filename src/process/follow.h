/* The devices follow their network interfaces: the helper receives changes by netlink, queries the interface, and has
 * the new state published and reported. A process without a device on an interface has no such socket. */
#ifndef PROCESS_FOLLOW_H
#define PROCESS_FOLLOW_H

#include "process/process.h"

struct pollfd;

/* Before anything else of this header. */
void follow_initialize(struct process *);
/* Begins to listen, and brings the devices up to date; without the socket, which is logged, they stay as they are. For
 * want of a descriptor or of memory the kernel can't be asked; then it is asked again: once the helper looks at its
 * timers, and each 100 ms. Before the helper starts. */
void follow_begin(struct process *);
void follow_end(struct process *);
/* In the child of a fork. */
void follow_abandon(struct process *);

/* For the helper: follow_poll writes the descriptors that it sleeps on besides, one at most, and returns how many;
 * follow_polled takes the result. */
unsigned follow_poll(const struct process *, struct pollfd *);
void follow_polled(struct process *, const struct pollfd *, unsigned count);

/* For the helper, without any lock: does what is to be done, if anything. False: another thread holds process->control;
 * to be called again soon. */
bool follow_changes(struct process *, nanos now);

#endif
