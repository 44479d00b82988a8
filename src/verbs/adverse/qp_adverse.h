/* A queue pair of an adverse process (adverse/adverse.h): its requests, answers and stores are late, as the rules
 * allow. All under qp->lock. */
#ifndef VERBS_ADVERSE_QP_ADVERSE_H
#define VERBS_ADVERSE_QP_ADVERSE_H

#include "adverse/landing.h"
#include "base/likely.h"
#include "verbs/qp/qp_engine.h"

enum { QP_EVENTS = 3 }; /* kinds of events that may be late */

enum carried { CARRIES_MESSAGE, CARRIES_WRITE, CARRIES_RESPONSE };

struct qp_adverse {
    struct qp *qp;
    struct adverse_source source;
    struct landings landings; /* of WRITEs that arrived */
    struct landings kept;     /* responses to READs that have ended; they land before the next completion */
    uint32_t released;        /* position in the send queue: work before it may leave */
    bool held;                /* the work at `released` waits */
    nanos requests_until;     /* until this time */
    nanos responses_until;    /* before this time no response leaves */
    struct payload carried;   /* the payload of the packet in hand */
    enum carried carries;
    uint32_t again;          /* the place in the send queue after the READ that was executed again last; or 0 */
    nanos events[QP_EVENTS]; /* when they are raised; or NANOS_NEVER */
    uint8_t grh[40];
};

/* Called before other threads know the queue pair. Does nothing unless the process is adverse, or without memory. */
void qp_adverse_begin(struct qp *);
void qp_adverse_release(struct qp *);

/* The owner_operations.change of an adverse process: reads, waits and writes. */
bool qp_adverse_change(struct engine_owner *, const struct packet *, void *memory, uint64_t *found);

/* Returns true if the next output must wait: a response, or a request. Then the queue pair's timer is set. */
bool qp_adverse_holds(struct qp *, bool response, nanos now);

/* Takes a packet that arrives. Returns the packet that the engine executes instead, in *room. Stores all data that
 * must be in memory before that. */
const struct packet *qp_adverse_take(struct qp *, const struct packet *, struct packet *room);

/* Lands the data of WRITEs that is due until then; all data of responses. */
void qp_adverse_land(struct qp *, nanos until);
void qp_adverse_land_responses(struct qp_adverse *);

/* Sets the queue pair's timer to the next deadline. */
void qp_adverse_watch(struct qp_adverse *);

/* Lands data that is due, and raises events that are due. */
void qp_adverse_expire(struct qp *, nanos now);

/* Lands all data that has arrived, and releases the answers, as a caller is about to take memory or the queue pair
 * away. */
void qp_adverse_settle_slow(struct qp *);

static inline void qp_adverse_settle(struct qp *qp)
{
    if (unlikely(qp_datapath(qp)->adverse != NULL))
        qp_adverse_settle_slow(qp);
}

#endif
