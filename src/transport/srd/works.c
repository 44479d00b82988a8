#include "transport/srd/works.h"

#include <string.h>

#include "base/likely.h"
#include "transport/srd/flows.h"

static struct send_wqe *place_of(const struct srd *srd, uint32_t position)
{
    return send_queue_at(&srd->common.queue, position);
}

/* Work from queue.next on was not looked at yet, and has no marks of the engine. */
bool srd_work_is_live(const struct srd *srd, uint32_t position)
{
    return (int32_t)(position - srd->common.queue.next) >= 0 || !place_of(srd, position)->started;
}

/* ---- compact queue ---- */

static void move_list(struct srd *srd, struct srd_works *works)
{
    uint32_t at = works->first, next;
    if (!works->any)
        return;
    works->first = place_of(srd, at)->srd.moved;
    for (; at != works->last; at = next) {
        next = place_of(srd, at)->srd.link;
        place_of(srd, at)->srd.link = place_of(srd, next)->srd.moved;
    }
    works->last = place_of(srd, at)->srd.moved;
}

static void move_flow(struct srd *srd, struct srd_flow *flow)
{
    flow->moved = true;
    move_list(srd, &flow->fresh);
    move_list(srd, &flow->busy);
    for (uint32_t number = flow->floor; number != flow->next; number++) {
        struct srd_flight *flight = srd_flows_at(flow, number);
        if (flight)
            flight->work = place_of(srd, flight->work)->srd.moved;
    }
}

/* The flows of work that is open, each once. There may be thousands of others, which know no place of the queue. */
static void move_flows(struct srd *srd)
{
    const struct send_queue *queue = &srd->common.queue;
    struct srd_flow *flow;
    for (uint32_t at = queue->head; at != queue->next; at++)
        if (!place_of(srd, at)->started && (flow = srd_flows_known(srd, place_of(srd, at))) && !flow->moved)
            move_flow(srd, flow);
    for (uint32_t at = queue->head; at != queue->next; at++)
        if (!place_of(srd, at)->started && (flow = srd_flows_known(srd, place_of(srd, at))))
            flow->moved = false;
}

/* Closes the holes that ended work left: one message that waits for its receiver, perhaps for ever, must not keep the
 * places of those that were posted after it. Called when half of the places are holes, so its cost is shared by as
 * many ends. The places from queue.next on stay: a builder may be filling the next one without the lock. */
static cold void close_holes(struct srd *srd)
{
    struct send_queue *queue = &srd->common.queue;
    uint32_t to = queue->next;
    for (uint32_t at = queue->next; at-- != queue->head;)
        if (!place_of(srd, at)->started)
            place_of(srd, at)->srd.moved = --to;
    move_flows(srd);
    for (uint32_t at = queue->next; at-- != queue->head;) {
        struct send_wqe *work = place_of(srd, at);
        if (!work->started && work->srd.moved != at)
            memcpy(place_of(srd, work->srd.moved), work, queue->stride);
    }
    queue->head = to;
    srd->requester->holes = 0;
}

/* ---- ends ---- */

void srd_report_drained(struct srd *srd)
{
    struct unreliable *common = &srd->common;
    if (!common->draining || common->drained_reported || common->queue.head != common->queue.next)
        return;
    common->drained_reported = true;
    common->owner->operations->event(common->owner, IBV_EVENT_SQ_DRAINED);
}

static void advance_head(struct srd *srd)
{
    struct send_queue *queue = &srd->common.queue;
    while (queue->head != queue->next && place_of(srd, queue->head)->started) {
        queue->head++;
        srd->requester->holes--;
    }
}

static void mark_ended(struct srd *srd, uint32_t position, enum ibv_wc_status status, enum reason reason)
{
    struct send_wqe *work = place_of(srd, position);
    work->started = true; /* before the owner looks at what has not ended (srd_describe) */
    srd->common.owner->operations->sent(srd->common.owner, work, status, reason);
    srd->requester->ended++;
    srd->requester->holes++;
    advance_head(srd);
}

void srd_end_work(struct srd *srd, uint32_t position, enum ibv_wc_status status, enum reason reason)
{
    mark_ended(srd, position, status, reason);
    if (srd->requester->holes > srd->common.queue.capacity / 2)
        close_holes(srd);
    srd_report_drained(srd);
}

void srd_flush_works(struct srd *srd)
{
    struct send_queue *queue = &srd->common.queue;
    uint32_t end = queue->tail;
    for (uint32_t at = queue->head; at != end; at++) {
        bool live = srd_work_is_live(srd, at);
        if (at == queue->next)
            queue->next++;
        if (live)
            mark_ended(srd, at, IBV_WC_WR_FLUSH_ERR, REASON_FLUSHED);
    }
}
