#include "verbs/ask/srq_report.h"

#include "facts/fill.h"
#include "verbs/queue/srq.h"

void srq_report_fill(struct facts_srq *facts, struct srq *from)
{
    lock_take(&from->queue.lock);
    FACTS_srq(FACT_FILL)
    lock_release(&from->queue.lock);
    struct receive_queue_state state = receive_queue_look(&from->queue);
    fact_put(&facts->refused_receives, state.refused, state.refused);
    fact_put(&facts->refused_receive_reason, state.refused, state.reason);
}
