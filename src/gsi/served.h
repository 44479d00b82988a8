/* Which processes of the host answer for queue pair 1 on the port of a device: in the host's list of multicast groups
 * they stand as members of a group that is named after the interface. */
#ifndef GSI_SERVED_H
#define GSI_SERVED_H

#include "ipc/node.h"
#include "process/process.h"

/* Opens the port of the device, if it is to have one and has none yet, as port_open does; from now on this process
 * answers there, and others of the host know it. Under process->control. */
int served_open(struct process *, const struct device *);

/* Returns true if this process answers there. Thread-safe. */
bool served_here(const struct process *, const struct device *);

/* All processes that do; as node_members. */
void served_each(struct process *, const struct device *, void (*visit)(struct peer *, void *context), void *context);

#endif
