/* The endpoint of queue pair 1: packets from a network are for the general services interface, those from a process of
 * this host for the connection manager. */
#ifndef GSI_MAD_H
#define GSI_MAD_H

struct process;

/* Before the process receives: 0 or ENOMEM. When it is gone from the host. */
int mad_begin(struct process *);
void mad_end(struct process *);

#endif
