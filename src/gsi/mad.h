/* The endpoint of queue pair 1: gives packets from a network to the general services interface, and packets from a
 * process of this host to the connection manager. */
#pragma once

struct process;

/* mad_begin is called before the process receives, and returns 0 or ENOMEM; mad_end after it has left the host. */
int mad_begin(struct process *);
void mad_end(struct process *);
