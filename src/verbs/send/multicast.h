/* Multicast within the host: a datagram is put into the link of every process that has joined its group.
 *
 * Like any datagram it waits in its send queue until those links have room, while their receivers take frames. A
 * process that takes nothing (stopped, or much too slow) is waited for once, for a moment; after that it misses
 * datagrams without room, which are counted, until it has room again. No thread waits.
 *
 * A queue pair that was made with IBV_QP_CREATE_BLOCK_SELF_MCAST_LB gets no copy of its datagrams; all other members
 * do, also in its process. */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <sys/queue.h>

struct frame;
struct process;
struct qp;

struct group {
    LIST_ENTRY(group) mine;     /* in qp->groups */
    LIST_ENTRY(group) siblings; /* in process_objects.groups */
    struct qp *qp;
    union ibv_gid gid;
};

/* Makes the process's endpoint for datagrams to groups, before it receives. */
void multicast_begin(struct process *);

/* Returns true if the next datagram may be sent to this group now. False: the queue pair waits for room, and looks
 * again in time. This and the next functions are called under qp->lock. */
bool multicast_has_room(struct qp *, const uint8_t group[16]);

/* Sends a datagram, and writes how many processes of this host have joined the group; those without room miss it, which
 * is counted. False: the memory of its payload is gone. */
bool multicast_send(struct qp *, const uint8_t group[16], const struct frame *, unsigned *members);

/* Stops waiting for members. */
void multicast_forget(struct qp *);
