#include "verbs/adverse/qp_adverse.h"

#include <stdlib.h>

#include "link/guard.h"
#include "verbs/adverse/qp_events.h"
#include "verbs/qp/qp_error.h"

/* The longest, unless times are scaled. */
static const nanos read_late = 200 * NANOS_MICROSECOND;

void qp_adverse_begin(struct qp *qp)
{
    struct qp_adverse *adverse = adverse_on ? calloc(1, sizeof *adverse) : NULL;
    if (!adverse)
        return;
    adverse->qp = qp;
    adverse->source = adverse_source();
    landings_begin(&adverse->landings);
    landings_begin(&adverse->kept);
    for (unsigned i = 0; i < QP_EVENTS; i++)
        adverse->events[i] = NANOS_NEVER;
    qp_raise_later = qp_events_keep;
    qp->rate_limit.paced = true;
    qp->rate_limit.wake = qp->rate_limit.lands = NANOS_NEVER;
    qp_datapath(qp)->adverse = adverse;
}

void qp_adverse_release(struct qp *qp)
{
    struct qp_adverse *adverse = qp_datapath(qp)->adverse;
    if (adverse)
        landings_drop(&adverse->landings), landings_drop(&adverse->kept);
    free(adverse);
}

/* --- leaving */

static void wake_at(struct qp *qp, nanos at)
{
    if (at < qp->rate_limit.wake)
        qp->rate_limit.wake = at;
    qp_expire_by(qp, at);
}

/* The table of the order of work without overtaking: only a READ may begin while READs and atomics are under way. */
static bool would_overtake(struct qp *qp, const struct send_queue *queue)
{
    const struct send_wqe *work = send_queue_at(queue, queue->next);
    return qp_is_reliable(qp) && work->opcode != IBV_WR_RDMA_READ && engine_reads_under_way(qp_engine(qp));
}

static bool requests_wait(struct qp *qp, struct qp_adverse *adverse, nanos now)
{
    const struct send_queue *queue = engine_queue(qp_engine(qp));
    if (queue->next == queue->tail)
        return false;
    qp_adverse_land_responses(adverse); /* this may be fenced by it */
    if (adverse_on && !adverse_shows(ADVERSE_OVERTAKE) && would_overtake(qp, queue))
        return true; /* the answer brings the queue pair here again */
    if ((int32_t)(adverse->released - queue->next) > 0)
        return false;
    if (!adverse->held)
        adverse->requests_until = now + adverse_delay(&adverse->source, ADVERSE_LATE_READ, read_late);
    adverse->held = adverse->requests_until > now;
    if (!adverse->held)
        adverse->released = queue->tail;
    else
        wake_at(qp, adverse->requests_until);
    return adverse->held;
}

/* Returns true if responses wait. Requests leave after the answers that are owed; so that answers never hold a
 * request for ever, they leave when a request may. */
static bool responses_wait(struct qp *qp, struct qp_adverse *adverse, nanos now)
{
    const struct send_queue *queue = engine_queue(qp_engine(qp));
    if (!adverse_on || adverse->responses_until <= now)
        return false;
    if (queue->next != queue->tail && !requests_wait(qp, adverse, now)) {
        adverse->responses_until = 0;
        return false;
    }
    wake_at(qp, adverse->responses_until);
    return true;
}

bool qp_adverse_holds(struct qp *qp, bool response, nanos now)
{
    lock_assert_held(&qp->lock);
    struct qp_adverse *adverse = qp_datapath(qp)->adverse;
    if (!adverse)
        return false;
    return response ? responses_wait(qp, adverse, now) : requests_wait(qp, adverse, now);
}

void qp_adverse_expire(struct qp *qp, nanos now)
{
    lock_assert_held(&qp->lock);
    struct qp_adverse *adverse = qp_datapath(qp)->adverse;
    bool opened = guard_begin(now);
    if (adverse) {
        qp_adverse_land_responses(adverse);
        qp_adverse_land(qp, now);
    }
    guard_end(opened);
    if (adverse)
        qp_events_expire(qp, now);
}

void qp_adverse_settle_slow(struct qp *qp)
{
    lock_assert_held(&qp->lock);
    bool opened = guard_begin_now();
    qp_datapath(qp)->adverse->responses_until = 0;
    qp_adverse_land_responses(qp_datapath(qp)->adverse);
    qp_adverse_land(qp, NANOS_NEVER);
    guard_end(opened);
    qp_events_expire(qp, NANOS_NEVER);
}
