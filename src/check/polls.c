/* Completions, as programs poll them. */
#include "check/flight.h"
#include "check/layer.h"
#include "verbs/queue/cq.h"

static int poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *list)
{
    int found = layer_below(ibv_poll_cq)(cq, count, list);
    if (found <= 0)
        return found;
    shadow_lock();
    for (const struct ibv_wc *wc = list; wc < list + found; wc++)
        flight_complete(&(struct hooks_completion){wc->wr_id, wc->qp_num, wc->byte_len, wc->status, wc->opcode});
    shadow_unlock();
    return found;
}

/* The entry that an iterator shows, with what the program may not have asked for. */
static void complete_shown(struct ibv_cq_ex *ibv)
{
    const struct completion *shown = &((const struct cq *)ibv)->current;
    shadow_lock();
    flight_complete(
        &(struct hooks_completion){shown->id, shown->qp_number, shown->length, shown->status, shown->opcode});
    shadow_unlock();
}

static int start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
    int result = layer_below(ibv_start_poll)(cq, attr);
    if (!result)
        complete_shown(cq);
    return result;
}

static int next_poll(struct ibv_cq_ex *cq)
{
    int result = layer_below(ibv_next_poll)(cq);
    if (!result)
        complete_shown(cq);
    return result;
}

void polls_fill(struct calls *calls)
{
    calls->ibv_poll_cq = poll_cq;
    calls->ibv_start_poll = start_poll;
    calls->ibv_next_poll = next_poll;
}
