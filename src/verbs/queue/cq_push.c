#include "verbs/queue/cq_push.h"

#include "base/read_clock.h"
#include "diag/log.h"
#include "diag/sentence.h"
#include "verbs/object/async.h"
#include "verbs/object/disturbance.h"
#include "verbs/queue/cq_entries.h"
#include "verbs/queue/cq_event.h"
#include "verbs/queue/cq_note.h"

enum { STAMPS = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK };

void cq_judge_push(struct cq *cq)
{
    cq->slow.puts =
        cq->part || cq->wc_flags & STAMPS || (cq->moderation.disturbance && cq->moderation.disturbance->completes);
}

/* Stamps an entry. When the wall clock is set back, later entries keep the newest stamp, so that stamps never fall. */
static void stamp(struct cq *cq, struct completion *entry)
{
    if (cq->wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
        entry->timestamp = read_clock(CLOCK_MONOTONIC);
    if (cq->wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK) {
        uint64_t now = read_clock(CLOCK_REALTIME);
        cq->wallclock = entry->wallclock = now > cq->wallclock ? now : cq->wallclock;
    }
}

void cq_overrun(struct cq *cq)
{
    lock_assert_held(&cq->lock);
    if (cq->told.overrun)
        return;
    cq->told.overrun = true;
    cq_note(cq, EVENT_CQ_OVERRUN, 0, 0);
    log_reason(LOG_ERROR, REASON_CQ_OVERRUN, "the " OBJECT_NAMED " of %u entries", cq->object.class->name,
               cq->object.handle, cq->ring.capacity);
    async_raise(cq->object.context, (struct ibv_async_event){.element.cq = &cq->ibv, .event_type = IBV_EVENT_CQ_ERR});
    atomic_store(&cq->process->loop.overrun, true);
    node_wake(cq->process->node);
}

/* With IGNORE_OVERRUN "CQE always will be written to next entry" (ibv_create_cq_ex(3)), which is the place of the
 * oldest. */
struct completion *cq_make_room(struct cq *cq)
{
    lock_assert_held(&cq->lock);
    if (!(cq->create_flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN)) {
        cq_overrun(cq);
        lock_release(&cq->lock);
        return NULL;
    }
    cq_ring_drop_oldest(&cq->ring);
    return cq_ring_room(&cq->ring);
}

void cq_put(struct cq *cq, struct completion *entry, bool notable)
{
    lock_assert_held(&cq->lock);
    if (cq->wc_flags & STAMPS)
        stamp(cq, entry);
    cq_ring_put(&cq->ring);
    if (notable)
        cq->notable_end = cq_ring_tail(&cq->ring);
    if (cq->part)
        cq->part->put(cq, notable);
    cq_event_notify(cq, notable);
}

void cq_put_late(struct cq *cq, const struct completion *entry, bool notable)
{
    lock_assert_held(&cq->lock);
    struct completion *to = cq_ring_room(&cq->ring);
    if (!to)
        to = cq_make_room(cq);
    if (!to) {
        lock_take(&cq->lock);
        return;
    }
    *to = *entry;
    cq_put(cq, to, notable);
}

void cq_end_push_slow(struct cq *cq, struct completion *entry, bool notable)
{
    lock_assert_held(&cq->lock);
    struct disturbance *disturbance = cq->moderation.disturbance;
    if (likely(!disturbance || !disturbance->completes || !disturbance->completes(cq, entry, notable)))
        cq_put(cq, entry, notable);
}

bool cq_push(struct cq *cq, const struct completion *entry, bool notable)
{
    struct completion *to = cq_begin_push(cq);
    if (!to)
        return false;
    *to = *entry;
    cq_end_push(cq, to, notable);
    return true;
}
