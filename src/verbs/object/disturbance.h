/* What disturbs a queue pair or a completion queue: behaviours of an unkind adapter and the rules of scripts. The
 * floors below verbs/disturb/ ask it by this table, and know nothing else of it. Usual objects have no table. */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/nanos.h"

struct completion;
struct cq;
struct packet;
struct qp;

/* The hooks of a queue pair are called under qp->lock, those of a completion queue under cq->lock. */
struct disturbance {
    /* Of a queue pair. */
    nanos due; /* when `expires` must be called; or NANOS_NEVER */
    /* Returns true if the next output, a response or a request, must wait; then the queue pair's timer is set. */
    bool (*holds)(struct qp *, bool response, nanos now);
    /* Answers owner_operations.holds_back, for queue pairs whose messages have no order. */
    unsigned (*holds_back)(struct qp *);
    /* Returns the packet that the engine executes instead of this one, in *room; or this one. */
    const struct packet *(*arrives)(struct qp *, const struct packet *, struct packet *room);
    /* Executes an atomic (owner_operations.change); NULL: the engine does. */
    bool (*changes)(struct qp *, const struct packet *, void *memory, uint64_t *found);
    /* Returns true if the event is raised later, by qp_raise_now. */
    bool (*raises)(struct qp *, enum ibv_event_type);
    void (*expires)(struct qp *, nanos now);
    /* Ends all that is late, as a caller is about to take memory or the queue pair away. */
    void (*settles)(struct qp *);

    /* Of a completion queue. */
    /* Returns true if the entry is put in later, or is lost. It may change the entry. NULL: no entry is disturbed. */
    bool (*completes)(struct cq *, struct completion *, bool notable);
    /* Returns true if the event is raised later, or is lost. */
    bool (*notifies)(struct cq *);
    /* Do the same as cq_ring_withdraw and cq_ring_forget, with entries that are put in later. */
    void (*withdraws)(struct cq *, uint32_t qp_number);
    void (*forgets)(struct cq *, const _Atomic uint32_t *retired);
};
