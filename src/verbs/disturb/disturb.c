#include "verbs/disturb/disturb.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "diag/log.h"
#include "link/guard.h"
#include "record/recorded.h"
#include "record/recorder.h"
#include "verbs/disturb/qp_adverse.h"
#include "verbs/qp/qp_error.h"

/* The longest delays, unless times are scaled. */
static const nanos read_late = 200 * NANOS_MICROSECOND, event_late = 2 * NANOS_MILLISECOND,
                   passed_late = 4 * NANOS_MILLISECOND;

/* --- leaving */

static void wake_at(struct qp *qp, nanos at)
{
    if (at < qp->rate_limit.wake)
        qp->rate_limit.wake = at;
    qp_expire_by(qp, at);
}

/* Returns true if the next work may not begin without ADVERSE_OVERTAKE: it is no READ, and READs or atomics are under
 * way. */
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
    qp_adverse_land_responses(adverse); /* a fenced request must find the data of earlier READs */
    if (adverse_on && !adverse_shows(ADVERSE_OVERTAKE) && would_overtake(qp, queue))
        return true; /* the response of the READ brings the queue pair here again */
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

/* Returns true if responses wait. Requests leave after the responses that are owed; so that responses never hold a
 * request for ever, they leave when a request may leave. */
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

static bool holds_output(struct qp *qp, bool response, nanos now)
{
    lock_assert_held(&qp->lock);
    struct qp_adverse *adverse = qp_adverse_of(qp);
    return response ? responses_wait(qp, adverse, now) : requests_wait(qp, adverse, now);
}

/* Each wait is as long as two of the one before it. A wait of a millisecond is long beside other delays, so most
 * packets have none. */
static unsigned holds_back(struct qp *qp)
{
    enum { ONE_IN = 4 };
    lock_assert_held(&qp->lock);
    struct adverse_source *source = &qp_adverse_of(qp)->source;
    if (!adverse_shows(ADVERSE_ANY_ORDER) || adverse_draw(source, ONE_IN - 1))
        return 0;
    nanos late = adverse_delay(source, ADVERSE_ANY_ORDER, passed_late);
    unsigned waits = late > 0;
    for (nanos longest = SRD_WAIT; waits && longest < late && waits < SRD_LATE_MOST; longest *= 2)
        waits++;
    return waits;
}

/* --- asynchronous events, each late by another time, so in any order */

/* Errors are raised at once: a program's reaction to them would only take longer. */
static const enum ibv_event_type may_be_late[QP_EVENTS] = {IBV_EVENT_COMM_EST, IBV_EVENT_QP_LAST_WQE_REACHED,
                                                           IBV_EVENT_SQ_DRAINED};

static bool raises(struct qp *qp, enum ibv_event_type type)
{
    struct qp_adverse *adverse = qp_adverse_of(qp);
    for (unsigned i = 0; i < QP_EVENTS; i++) {
        nanos late = may_be_late[i] == type ? adverse_delay(&adverse->source, ADVERSE_ASYNC_EVENTS, event_late) : 0;
        if (!late)
            continue;
        adverse->events[i] = qp_flow(qp)->now + late;
        qp_adverse_watch(adverse);
        return true;
    }
    return false;
}

static void raise_due(struct qp_adverse *adverse, nanos now)
{
    for (unsigned i = 0; i < QP_EVENTS; i++) {
        if (adverse->events[i] == NANOS_NEVER || adverse->events[i] > now)
            continue;
        adverse->events[i] = NANOS_NEVER;
        qp_raise_now(adverse->qp, may_be_late[i]);
    }
    qp_adverse_watch(adverse);
}

/* --- the table */

static void expires(struct qp *qp, nanos now)
{
    lock_assert_held(&qp->lock);
    struct qp_adverse *adverse = qp_adverse_of(qp);
    bool opened = guard_begin_now();
    qp_adverse_land_responses(adverse);
    qp_adverse_land(qp, now);
    guard_end(opened);
    raise_due(adverse, now);
}

static void settles(struct qp *qp)
{
    qp_adverse_of(qp)->responses_until = 0;
    expires(qp, NANOS_NEVER);
}

void qp_disturb(struct qp *qp)
{
    struct qp_adverse *adverse = adverse_on ? calloc(1, sizeof *adverse) : NULL;
    if (!adverse)
        return;
    adverse->hooks = (struct disturbance){.due = NANOS_NEVER,
                                          .holds = holds_output,
                                          .holds_back = holds_back,
                                          .arrives = qp_adverse_arrives,
                                          .changes = adverse_shows(ADVERSE_TORN) ? qp_adverse_changes : NULL,
                                          .raises = raises,
                                          .expires = expires,
                                          .settles = settles};
    adverse->qp = qp;
    adverse->source = adverse_source();
    landings_begin(&adverse->landings);
    landings_begin(&adverse->kept);
    for (unsigned i = 0; i < QP_EVENTS; i++)
        adverse->events[i] = NANOS_NEVER;
    qp->rate_limit.wake = NANOS_NEVER;
    qp_datapath(qp)->disturbance = &adverse->hooks;
    qp_judge_watch(qp);
}

/* Returns true of the first queue pair of each type in the process. */
static bool is_first_of(const struct qp_kind *kind)
{
    static _Atomic uint32_t known;
    uint32_t bit = 1;
    for (const struct qp_kind *const *at = qp_kinds; *at && *at != kind; at++)
        bit <<= 1;
    return !(atomic_fetch_or(&known, bit) & bit);
}

/* Types with an engine of their own have doors for which the recorder has no line. */
void qp_record(struct qp *qp)
{
    bool recordable = !qp->kind->initialize_engine;
    if (!recorder_is_on())
        return;
    if (!recordable && is_first_of(qp->kind))
        log_write(LOG_WARN,
                  "the recording leaves out queue pairs of type %s: softverbs run --capture has their packets",
                  qp->kind->name);
    if (!recordable)
        return;
    qp_datapath(qp)->recorded = recorded_begin(qp_engine(qp), qp_owner(qp), &qp->number);
    qp_judge_watch(qp);
}

void qp_disturb_end(struct qp *qp)
{
    struct disturbance *hooks = qp_datapath(qp)->disturbance;
    recorded_end(qp_datapath(qp)->recorded);
    if (!hooks)
        return;
    landings_drop(&qp_adverse_of(qp)->landings);
    landings_drop(&qp_adverse_of(qp)->kept);
    free(qp_adverse_of(qp));
}
