#include "verbs/queue/cq_note.h"

#include "events/last_events.h"

void cq_note(struct cq *cq, enum event event, uint64_t a, uint64_t b)
{
    lock_assert_held(&cq->lock);
    event_note(cq->object.handle, event, a, b);
    last_events_note(&cq->told.events, event, 0, a, b);
}
