/* A queue pair of an adverse process (adverse/adverse.h): its requests, answers and stores come late, as the rules
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
    bool held;                /* the work there waits */
    nanos requests_until;     /* for this time */
    nanos responses_until;    /* before this time nothing leaves while something is owed */
    struct payload carried;   /* of the packet in hand */
    enum carried carries;
    uint32_t again;          /* the place in the send queue behind the READ that was executed again last; 0: none was */
    nanos events[QP_EVENTS]; /* when they come; NANOS_NEVER: none waits */
    uint8_t grh[40];
};

/* Before anybody else knows the queue pair. Nothing happens where the process is not adverse, or without memory. */
void qp_adverse_begin(struct qp *);
void qp_adverse_release(struct qp *);

/* As owner_operations.change, in an adverse process: reads, waits and writes. */
bool qp_adverse_change(struct engine_owner *, const struct packet *, void *memory, uint64_t *found);

/* Returns true if the next output must wait: a response, or a request. Then the queue pair's timer is set. */
bool qp_adverse_holds(struct qp *, bool response, nanos now);

/* A packet arrives. Returns the packet that the engine executes in its stead, in *room. All data that must be in memory
 * before its execution is there. */
const struct packet *qp_adverse_take(struct qp *, const struct packet *, struct packet *room);

/* Of WRITEs, the data that is due until then lands. Of responses, all. */
void qp_adverse_land(struct qp *, nanos until);
void qp_adverse_land_responses(struct qp_adverse *);

/* Sets the queue pair's timer to the next deadline. */
void qp_adverse_watch(struct qp_adverse *);

/* Data that is due lands, and events that are due are raised. */
void qp_adverse_expire(struct qp *, nanos now);

/* All lands that has arrived, and nothing holds the answers back: a caller is about to take memory away, or the queue
 * pair. */
void qp_adverse_settle_slow(struct qp *);

static inline void qp_adverse_settle(struct qp *qp)
{
    if (unlikely(qp_datapath(qp)->adverse != NULL))
        qp_adverse_settle_slow(qp);
}

#endif
