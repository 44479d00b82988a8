/* The devices follow their network interfaces: the helper receives changes by netlink, queries the interface, and
 * publishes and reports the new state. A process without a device on an interface has no such socket. */
#pragma once

#include "process/process.h"

struct pollfd;

/* Called before all other functions of this header. */
void follow_initialize(struct process *);
/* Begins to listen, and updates the devices. If the socket can't be opened, which is logged, they stay as they are.
 * If the kernel can't be asked for want of a descriptor or of memory, it is asked again: when the helper looks at
 * its timers, and every 100 ms. Called before the helper starts. */
void follow_begin(struct process *);
/* Closes the socket, also in the child of a fork. */
void follow_end(struct process *);

/* The helper calls these: follow_poll writes the descriptors that it sleeps on besides, at most one, and returns how
 * many; follow_polled takes the result. */
unsigned follow_poll(const struct process *, struct pollfd *);
void follow_polled(struct process *, const struct pollfd *, unsigned count);

/* Brings devices up to date whose interfaces have changed; called by the helper, without any lock. False: another
 * thread holds process->control; call it again soon. */
bool follow_changes(struct process *, nanos now);
