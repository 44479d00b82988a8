#include "verbs/ask/cq_report.h"

#include "events/last_events.h"
#include "verbs/queue/comp_channel.h"
#include "verbs/queue/cq.h"

static void report_events(FILE *out, struct cq *cq)
{
    const char *word = cq->channel && comp_channel_has(cq->channel, cq) ? "true" : "false";
    if (cq->channel)
        fprintf(out, ",\"event\":%s", word);
    fprintf(out, ",\"asked\":%u,\"raised\":%u,\"lost\":%u", cq->told.asked, cq->told.raised, cq->told.lost);
    if (cq->told.lost_last)
        fputs(",\"lost_last\":true", out);
}

void cq_report(FILE *out, struct cq *cq, const int64_t *epoch)
{
    lock_take(&cq->lock);
    fprintf(out, "\"handle\":%u,\"size\":%u,\"waiting\":%u,\"armed\":%s,\"overrun\":%s", cq->object.handle,
            cq->ring.capacity, cq_ring_count(&cq->ring), cq->armed ? "true" : "false",
            cq->told.overrun ? "true" : "false");
    if (cq->armed == CQ_ARMED_SOLICITED)
        fputs(",\"solicited\":true", out);
    report_events(out, cq);
    if (epoch) {
        fputs(",\"events\":", out);
        last_events_report(out, cq->told.events, *epoch);
    }
    lock_release(&cq->lock);
}

void cq_report_object(FILE *out, const struct object *object, const int64_t *epoch)
{
    cq_report(out, (struct cq *)((char *)object - offsetof(struct cq, object)), epoch);
    fprintf(out, ",\"users\":%u", object->uses);
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
