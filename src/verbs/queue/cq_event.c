#include "verbs/queue/cq_event.h"

#include <errno.h>

#include "base/container.h"
#include "base/likely.h"
#include "events/refusal.h"
#include "process/process.h"
#include "runtime/clock.h"
#include "verbs/object/disturbance.h"
#include "verbs/queue/comp_channel.h"
#include "verbs/queue/cq_note.h"

static nanos period_of(const struct cq *cq)
{
    return cq->moderation.period * NANOS_MICROSECOND;
}

static bool has_enough(const struct cq *cq)
{
    return !cq->moderation.count || !cq->moderation.period || cq->moderation.held >= cq->moderation.count;
}

static void start_timer(struct cq *cq, nanos deadline)
{
    cq->moderation.deadline = deadline;
    schedule_by(&cq->process->schedule, &cq->moderation.timer, deadline);
}

/* Adds entries that would raise the event. True: the event is held back for now. */
static bool holds(struct cq *cq, uint32_t entries)
{
    bool first = !cq->moderation.held;
    cq->moderation.held += entries;
    if (has_enough(cq))
        return false;
    if (first)
        start_timer(cq, clock_now() + period_of(cq));
    return true;
}

void cq_event_raise(struct cq *cq)
{
    lock_assert_held(&cq->lock);
    cq->told.raised++;
    cq_note(cq, EVENT_CQ_EVENT, 0, 0);
    comp_channel_notify(cq->channel, cq);
}

/* Raises the event. No entry is held back any more; the timer is left to run out. */
static void raise_event(struct cq *cq)
{
    lock_assert_held(&cq->lock);
    cq->armed = CQ_UNARMED;
    cq->unreported = cq_unreported(cq) + 1;
    cq->moderation.held = 0;
    cq->moderation.deadline = NANOS_NEVER;
    if (!cq->channel)
        return;
    cq->told.lost_last = unlikely(cq->moderation.disturbance != NULL) && cq->moderation.disturbance->notifies(cq);
    if (likely(!cq->told.lost_last))
        cq_event_raise(cq);
}

void cq_event_notify(struct cq *cq, bool notable)
{
    lock_assert_held(&cq->lock);
    if (cq->armed == CQ_UNARMED || (cq->armed == CQ_ARMED_SOLICITED && !notable))
        return;
    if (unlikely(cq->moderation.period) && holds(cq, 1))
        return;
    raise_event(cq);
}

/* The number of entries that would have raised the event if the CQ had been armed, and did not raise one. Of solicited
 * completions 1, however many there are. */
static uint32_t waiting(const struct cq *cq)
{
    uint32_t first = cq_unreported(cq), tail = cq_ring_tail(&cq->ring);
    if ((int32_t)(tail - first) <= 0)
        return 0;
    return cq->armed == CQ_ARMED ? tail - first : cq_holds_notable(cq) && (int32_t)(cq->notable_end - first) > 0;
}

/* While the program has an event to fetch, another one would be useless: it arms again once it has fetched that. Events
 * that are held back are already counted. */
void cq_event_arm(struct cq *cq, enum cq_armed wanted)
{
    lock_assert_held(&cq->lock);
    cq->told.asked++;
    cq_note(cq, EVENT_CQ_ARMED, wanted == CQ_ARMED_SOLICITED, cq_ring_count(&cq->ring));
    if (cq->armed < wanted)
        cq->armed = wanted;
    uint32_t entries = cq->moderation.held ? 0 : waiting(cq);
    if (entries && !cq->moderation.only_new && !(cq->channel && comp_channel_has(cq->channel, cq)) &&
        !holds(cq, entries))
        raise_event(cq);
}

/* Events that are held back already are judged anew. */
static void change(struct cq *cq, const struct ibv_moderate_cq *to)
{
    cq->moderation.count = to->cq_count;
    cq->moderation.period = to->cq_period;
    if (!cq->moderation.held)
        return;
    nanos deadline = clock_now() + period_of(cq);
    if (has_enough(cq))
        raise_event(cq);
    else if (deadline < cq->moderation.deadline)
        start_timer(cq, deadline);
}

int cq_event_moderate(struct ibv_cq *ibv, struct ibv_modify_cq_attr *attr)
{
    struct cq *cq = (struct cq *)ibv;
    if (!cq_is_known(ibv))
        return refused(ENOENT);
    if (attr->attr_mask & ~(uint32_t)IBV_CQ_ATTR_MODERATE)
        return refuse(EINVAL, REASON_UNKNOWN_BITS, "attr_mask is 0x%x", attr->attr_mask);
    lock_take(&cq->lock);
    if (attr->attr_mask & IBV_CQ_ATTR_MODERATE)
        change(cq, &attr->moderate);
    lock_release(&cq->lock);
    return 0;
}

static void cq_event_expired(struct timer *timer, nanos now)
{
    struct cq *cq = container_of(timer, struct cq, moderation.timer.timer);
    lock_take(&cq->lock);
    if (cq->moderation.held && cq->moderation.deadline <= now)
        raise_event(cq);
    if (cq->moderation.held)
        schedule_by(&cq->process->schedule, &cq->moderation.timer, cq->moderation.deadline);
    lock_release(&cq->lock);
}

void cq_event_begin(struct cq *cq)
{
    schedule_initialize_timer(&cq->moderation.timer, cq_event_expired);
}

void cq_event_forget(struct cq *cq)
{
    lock_assert_held(&cq->process->progress);
    schedule_cancel(&cq->process->schedule, &cq->moderation.timer);
}
