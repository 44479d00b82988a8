#include "verbs/ask/srq_report.h"

#include "facts/fill.h"
#include "verbs/queue/srq.h"

void srq_report_fill(struct facts_srq *facts, struct srq *from)
{
    lock_take(&from->queue.lock);
    FACTS_srq(FACT_FILL)
    lock_release(&from->queue.lock);
}
