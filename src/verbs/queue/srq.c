#include "verbs/queue/srq.h"

#include "events/last_events.h"
#include "verbs/object/async.h"

static const struct srq_kind *const no_kinds[] = {NULL};
const struct srq_kind *const *srq_kinds = no_kinds;

static void note_with_count(struct srq *srq, enum event event, uint64_t a)
{
    lock_assert_held(&srq->queue.lock);
    event_probe(srq->number, event, a, srq->queue.count);
    last_events_note(&srq->told, event, 0, a, srq->queue.count);
}

void srq_note_limit(struct srq *srq, uint32_t limit)
{
    note_with_count(srq, EVENT_SRQ_LIMIT, limit);
}

/* A peer repeats the message until it finds a receive: one record for all repeats in a row. */
void srq_note_empty(struct srq *srq, uint32_t qp_number)
{
    lock_take(&srq->queue.lock);
    event_probe(srq->number, EVENT_SRQ_EMPTY, qp_number, 0);
    if (!last_events_again(srq->told, EVENT_SRQ_EMPTY, qp_number))
        last_events_note(&srq->told, EVENT_SRQ_EMPTY, 1, qp_number, 0);
    lock_release(&srq->queue.lock);
}

void srq_raise(struct srq *srq, enum ibv_event_type type)
{
    lock_take(&srq->queue.lock);
    note_with_count(srq, EVENT_SRQ_EVENT, type);
    lock_release(&srq->queue.lock);
    async_raise(srq->object.context, (struct ibv_async_event){.element.srq = &srq->ibv, .event_type = type});
}
