#include "verbs/ask/cq_report.h"

#include "events/last_events.h"
#include "facts/fill.h"
#include "verbs/queue/comp_channel.h"
#include "verbs/queue/cq.h"

void cq_report_fill(struct facts_cq *facts, struct cq *from)
{
    lock_assert_held(&from->lock);
    FACTS_cq(FACT_FILL)
    fact_put(&facts->waiting, true, cq_ring_count(&from->ring));
    fact_put_flag(&facts->solicited, from->armed == CQ_ARMED_SOLICITED, true);
    if (from->channel)
        fact_put_flag(&facts->event, true, comp_channel_has(from->channel, from));
}

void cq_report(FILE *out, struct cq *cq, struct facts_cq *facts, const int64_t *epoch)
{
    lock_take(&cq->lock);
    cq_report_fill(facts, cq);
    struct last_events_told told = {cq->told.events, epoch ? *epoch : 0};
    if (epoch)
        fact_put_inner(&facts->events, last_events_write, &told);
    facts_write(out, &facts_of_cq, facts);
    lock_release(&cq->lock);
}

bool cq_report_waits(struct cq *cq, uint32_t qp_number)
{
    if (!cq || !cq->channel)
        return false;
    lock_take(&cq->lock);
    bool holds = cq_ring_holds(&cq->ring, qp_number);
    lock_release(&cq->lock);
    return holds;
}
