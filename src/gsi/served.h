/* The processes of the host that answer for queue pair 1 on a device's port. The host's list of multicast groups has
 * them as members of a group that is named after the interface. */
#pragma once

#include "ipc/node.h"
#include "verbs/object/process_objects.h"

/* Opens the device's port, if it needs one and has none yet, as port_open does; from now on this process answers there,
 * and others of the host know it. Under process->control. */
int served_open(struct process *, const struct device *);

/* Returns true if this process answers there. Thread-safe. */
bool served_here(const struct process *, const struct device *);

/* Calls `visit` for each process that answers there, as node_members does. */
void served_each(struct process *, const struct device *, void (*visit)(struct peer *, void *context), void *context);
