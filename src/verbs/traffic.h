/* The one place where frames leave for the links, and where packets arrive: here they are counted, captured, and meet
 * the faults that the user asked for. */
#ifndef VERBS_TRAFFIC_H
#define VERBS_TRAFFIC_H

#include "verbs/object.h"
#include "wire/op.h"
#include "wire/psn.h"

/* A new queue pair: which stream of faults is its own. */
void traffic_begin(struct qp *);
/* The queue pair is no more: what it counted becomes its device's. Under process->control. */
void traffic_end(struct qp *);

/* Adds what the queue pair has counted. */
void traffic_add(struct traffic_total *, const struct qp *);

/* Counts the frame of the queue pair and puts it into the link, as link->operations->send does, which must have room.
 * `peer` is whom the link leads to; NULL: it leads to another host. Under qp->lock, between the link's begin and end.
 * False: the memory of the payload is gone, and nothing was sent. */
bool traffic_send(struct qp *, struct peer *peer, struct link *, const struct frame *);

/* Counts a request as repeated when it lies before the first PSN that was not sent yet. */
static inline void traffic_repeated(struct qp *qp, const struct packet *packet, uint32_t fresh)
{
    if (psn_distance(packet->psn, fresh) < 0 && !(op_table[packet->opcode].flags & OP_RESPONSE))
        qp->traffic.repeated++;
}

/* The frame of the queue pair does not go to this member of its group, which has no room for it. Under qp->lock. */
void traffic_missed(struct qp *, const struct peer *);

/* May payloads go by reference? Not where copies may arrive late. */
bool traffic_may_reference(const struct process *, struct link *);

/* Do frames get lost on links that don't lose? */
bool traffic_is_faulty(const struct process *);

/* A packet arrived for this queue pair, under its lock. `route` NULL: from this host. Under process->progress, as all
 * below. */
void traffic_received(struct qp *, const struct packet *, const struct datagram_route *route);

/* A packet for queue pair 1 arrived that was made use of; the answer to one, as traffic_send, to where it came from. */
void traffic_managed(struct process *, const struct packet *, const struct datagram_route *route);
void traffic_send_alone(struct process *, struct link *, const struct packet *request, const struct frame *);

/* A packet arrived that is no queue pair's; one that could not even be read; a raw Ethernet frame. */
void traffic_stray(struct process *, const struct packet *, const struct datagram_route *route, enum reason);
void traffic_unread(struct process *, enum reason);
void traffic_received_frame(struct process *, const struct frame *);

#endif
