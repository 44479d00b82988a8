#include "transport/unreliable/unreliable.h"

#include "transport/request.h"
#include "transport/retire.h"

void unreliable_initialize(struct unreliable *common, struct engine_owner *owner, const struct send_queue *queue)
{
    *common = (struct unreliable){.owner = owner, .queue = *queue};
    common->queue.head = common->queue.next = common->queue.tail = 0;
}

static void report_drained(struct unreliable *common)
{
    if (!common->draining || common->drained_reported || common->begun || common->queue.head != common->queue.next)
        return;
    common->drained_reported = true;
    common->owner->operations->event(common->owner, IBV_EVENT_SQ_DRAINED);
}

void unreliable_settle(struct unreliable *common)
{
    retire_transmitted(&common->queue, common->owner);
    report_drained(common);
}

void unreliable_drain(struct unreliable *common, bool draining)
{
    common->draining = draining;
    common->drained_reported = false;
    unreliable_settle(common);
}

void unreliable_posted(struct unreliable *common)
{
    unreliable_settle(common);
    retire_all(&common->queue, common->owner);
}

void unreliable_refuse(struct unreliable *common, enum ibv_wc_status status, enum reason reason)
{
    common->send_error = true;
    common->begun = false;
    retire_failed(&common->queue, common->owner, status, reason);
    common->owner->operations->failed(common->owner, true);
}

bool unreliable_end(struct unreliable *common, const struct send_wqe *work, enum ibv_wc_status status,
                    enum reason reason)
{
    if (send_wqe_is_scripted(work))
        status = common->owner->operations->local_operation(common->owner, work, &reason);
    if (status != IBV_WC_SUCCESS) {
        unreliable_refuse(common, status, reason);
        return false;
    }
    common->queue.next++;
    return true;
}

void unreliable_unreadable(struct unreliable *common)
{
    common->queue.next = common->queue.head;
    unreliable_refuse(common, request_status(REASON_LOCAL_GONE), REASON_LOCAL_GONE);
}

void unreliable_flush(struct unreliable *common)
{
    common->failed = true;
    common->begun = false;
    retire_transmitted(&common->queue, common->owner);
    retire_all(&common->queue, common->owner);
}

void unreliable_fail_receive(struct unreliable *common, const struct recv_wqe *receive, enum ibv_wc_status status,
                             enum reason reason, const struct packet *packet)
{
    const struct recv_cqe arrival = {.status = status, .reason = reason, .opcode = IBV_WC_RECV, .packet = packet};
    common->owner->operations->received(common->owner, receive, &arrival);
    unreliable_flush(common);
    common->owner->operations->failed(common->owner, false);
}
