/* The table of a queue pair of an adverse process: its requests, answers and stores are late, as the rules allow. All
 * under qp->lock. */
#pragma once

#include "adverse/landing.h"
#include "base/container.h"
#include "verbs/qp/qp_engine.h"

enum { QP_EVENTS = 3 }; /* kinds of events that may be late */

struct qp_adverse {
    struct disturbance hooks;
    struct qp *qp;
    struct adverse_source source;
    struct landings landings; /* data of WRITEs that arrived */
    struct landings kept;     /* responses to READs that have ended; they land before the next completion */
    uint32_t released;        /* position in the send queue: work before it may leave */
    bool held;                /* the work at `released` waits until requests_until */
    nanos requests_until;
    nanos responses_until;  /* before this time no response leaves */
    struct payload carried; /* the payload of the packet in hand, which `carry` stores now or later */
    bool (*carry)(struct qp_adverse *, uint32_t offset, const struct iovec *to, uint32_t count);
    uint32_t again;          /* the place in the send queue after the READ that was executed again last; or 0 */
    nanos events[QP_EVENTS]; /* when they are raised; or NANOS_NEVER */
    uint8_t grh[40];
};

/* The adverse state of a queue pair that has one. */
static inline struct qp_adverse *qp_adverse_of(struct qp *qp)
{
    return container_of(qp_datapath(qp)->disturbance, struct qp_adverse, hooks);
}

/* Hooks of struct disturbance: an atomic reads, waits and writes; a packet that arrives stores all data that must be in
 * memory before it. */
bool qp_adverse_changes(struct qp *, const struct packet *, void *memory, uint64_t *found);
const struct packet *qp_adverse_arrives(struct qp *, const struct packet *, struct packet *room);

/* qp_adverse_land stores the data of WRITEs that is due by `until`, qp_adverse_land_responses all data of responses. */
void qp_adverse_land(struct qp *, nanos until);
void qp_adverse_land_responses(struct qp_adverse *);

/* Sets the queue pair's timer to the next deadline. */
void qp_adverse_watch(struct qp_adverse *);
