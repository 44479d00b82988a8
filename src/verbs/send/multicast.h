/* Multicast within the host: a datagram goes into the link of every process that has joined its group.
 *
 * Like any datagram it waits in its send queue until those links have room, for as long as their receivers take what
 * lies in them. A process that takes nothing (stopped, or far behind) is waited for once, for a moment; from then on it
 * misses what it has no room for, which is counted, until it has room again. No thread waits.
 *
 * A queue pair that was made with IBV_QP_CREATE_BLOCK_SELF_MCAST_LB gets no copy of its datagrams; all other members
 * do, also those of its process. */
#ifndef VERBS_SEND_MULTICAST_H
#define VERBS_SEND_MULTICAST_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <sys/queue.h>

struct frame;
struct process;
struct qp;

struct group {
    LIST_ENTRY(group) mine;     /* in qp->groups */
    LIST_ENTRY(group) siblings; /* in process->groups */
    struct qp *qp;
    union ibv_gid gid;
};

/* Before the process receives: makes its endpoint for datagrams to groups. */
void multicast_begin(struct process *);

/* Returns true if the next datagram may go to this group now. False: the queue pair waits for room, and looks again in
 * time. Under qp->lock, as below. */
bool multicast_has_room(struct qp *, const uint8_t group[16]);

/* Sends it; members without room miss it, and that is counted. False: the memory of its payload is gone. */
bool multicast_send(struct qp *, const uint8_t group[16], const struct frame *);

/* Nothing waits for members any more. */
void multicast_forget(struct qp *);

#endif
