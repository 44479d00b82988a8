#include "verbs/cq_moderation.h"

#include <errno.h>

#include "verbs/cq.h"
#include "verbs/lifetime.h"
#include "verbs/process.h"
#include "verbs/progress.h"

static nanos period_of(const struct cq *cq)
{
    return cq->moderation.period * NANOS_MICROSECOND;
}

static bool has_enough(const struct cq *cq)
{
    return !cq->moderation.count || !cq->moderation.period || cq->moderation.held >= cq->moderation.count;
}

/* In the list before the helper is told when to look at it, as in progress_watch. */
static void start_timer(struct cq *cq, nanos deadline)
{
    struct process *process = cq->process;
    cq->moderation.deadline = deadline;
    lock_take(&process->waiting);
    if (!cq->moderation.timed)
        TAILQ_INSERT_TAIL(&process->moderated, cq, moderation.timer);
    cq->moderation.timed = true;
    lock_release(&process->waiting);
    progress_look_again(process, deadline);
}

static void stop_timer(struct cq *cq)
{
    struct process *process = cq->process;
    lock_take(&process->waiting);
    if (cq->moderation.timed)
        TAILQ_REMOVE(&process->moderated, cq, moderation.timer);
    cq->moderation.timed = false;
    lock_release(&process->waiting);
}

bool cq_moderation_holds(struct cq *cq)
{
    lock_assert_held(&cq->lock);
    cq->moderation.held++;
    if (has_enough(cq))
        return false;
    if (cq->moderation.held == 1)
        start_timer(cq, process_now() + period_of(cq));
    return true;
}

/* The timer is left to run out: the list is changed under progress only, but for additions. */
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
    nanos deadline = process_now() + period_of(cq);
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

static nanos expire(struct cq *cq, nanos now)
{
    lock_take(&cq->lock);
    if (cq->moderation.held && cq->moderation.deadline <= now)
        cq_raise(cq);
    nanos deadline = cq->moderation.held ? cq->moderation.deadline : NANOS_NEVER;
    if (deadline == NANOS_NEVER)
        stop_timer(cq);
    lock_release(&cq->lock);
    return deadline;
}

static struct cq *step(struct process *process, struct cq *from)
{
    lock_take(&process->waiting);
    struct cq *cq = from ? TAILQ_NEXT(from, moderation.timer) : TAILQ_FIRST(&process->moderated);
    lock_release(&process->waiting);
    return cq;
}

nanos cq_moderation_timers(struct process *process, nanos now)
{
    lock_assert_held(&process->progress);
    nanos earliest = NANOS_NEVER;
    for (struct cq *cq = step(process, NULL), *next; cq; cq = next) {
        next = step(process, cq);
        nanos deadline = expire(cq, now);
        if (deadline < earliest)
            earliest = deadline;
    }
    return earliest;
}

void cq_moderation_forget(struct cq *cq)
{
    lock_assert_held(&cq->process->progress);
    stop_timer(cq);
}
