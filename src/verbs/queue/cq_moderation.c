#include "verbs/queue/cq_moderation.h"

#include <errno.h>

#include "base/container.h"
#include "runtime/clock.h"
#include "verbs/queue/cq.h"

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

bool cq_moderation_holds(struct cq *cq)
{
    lock_assert_held(&cq->lock);
    cq->moderation.held++;
    if (has_enough(cq))
        return false;
    if (cq->moderation.held == 1)
        start_timer(cq, clock_now() + period_of(cq));
    return true;
}

/* The timer is left to run out. */
void cq_moderation_clear(struct cq *cq)
{
    lock_assert_held(&cq->lock);
    cq->moderation.held = 0;
    cq->moderation.deadline = NANOS_NEVER;
}

/* What is held back already is judged anew. */
static void change(struct cq *cq, const struct ibv_moderate_cq *to)
{
    cq->moderation.count = to->cq_count;
    cq->moderation.period = to->cq_period;
    if (!cq->moderation.held)
        return;
    nanos deadline = clock_now() + period_of(cq);
    if (has_enough(cq))
        cq_raise(cq);
    else if (deadline < cq->moderation.deadline)
        start_timer(cq, deadline);
}

int cq_moderation_modify(struct ibv_cq *ibv, struct ibv_modify_cq_attr *attr)
{
    struct cq *cq = (struct cq *)ibv;
    if (!cq_is_known(ibv))
        return ENOENT;
    if (attr->attr_mask & ~(uint32_t)IBV_CQ_ATTR_MODERATE)
        return EINVAL;
    lock_take(&cq->lock);
    if (attr->attr_mask & IBV_CQ_ATTR_MODERATE)
        change(cq, &attr->moderate);
    lock_release(&cq->lock);
    return 0;
}

static void cq_moderation_expired(struct timer *timer, nanos now)
{
    struct cq *cq = container_of(timer, struct cq, moderation.timer.timer);
    lock_take(&cq->lock);
    if (cq->moderation.held && cq->moderation.deadline <= now)
        cq_raise(cq);
    if (cq->moderation.held)
        schedule_by(&cq->process->schedule, &cq->moderation.timer, cq->moderation.deadline);
    lock_release(&cq->lock);
}

void cq_moderation_begin(struct cq *cq)
{
    schedule_initialize_timer(&cq->moderation.timer, cq_moderation_expired);
}

void cq_moderation_forget(struct cq *cq)
{
    lock_assert_held(&cq->process->progress);
    schedule_cancel(&cq->process->schedule, &cq->moderation.timer);
}
