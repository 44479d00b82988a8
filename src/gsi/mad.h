/* The endpoint of queue pair 1: what comes from a network is for the general services interface, what comes from a
 * process of this host for the connection manager. */
#ifndef GSI_MAD_H
#define GSI_MAD_H

struct process;

/* Before the process receives: 0 or ENOMEM. When it is gone from the host. */
int mad_begin(struct process *);
void mad_end(struct process *);

#endif
