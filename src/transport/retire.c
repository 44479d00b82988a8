#include "transport/retire.h"

void retire_head(struct send_queue *queue, struct engine_owner *owner, enum ibv_wc_status status, enum reason reason)
{
    const struct send_wqe *work = send_queue_at(queue, queue->head);
    if (queue->next == queue->head)
        queue->next++;
    queue->head++;
    owner->operations->sent(owner, work, status, reason);
}

void retire_transmitted(struct send_queue *queue, struct engine_owner *owner)
{
    while (queue->head != queue->next)
        retire_head(queue, owner, IBV_WC_SUCCESS, REASON_NONE);
}

void retire_all(struct send_queue *queue, struct engine_owner *owner)
{
    while (queue->head != queue->tail)
        retire_head(queue, owner, IBV_WC_WR_FLUSH_ERR, REASON_FLUSHED);
}

void retire_failed(struct send_queue *queue, struct engine_owner *owner, enum ibv_wc_status status, enum reason reason)
{
    retire_head(queue, owner, status, reason);
    retire_all(queue, owner);
}

void retire_begun(struct send_queue *queue, struct engine_owner *owner, enum ibv_wc_status status, enum reason reason)
{
    retire_head(queue, owner, status, reason);
    while (queue->head != queue->tail && send_queue_at(queue, queue->head)->started)
        retire_head(queue, owner, IBV_WC_WR_FLUSH_ERR, REASON_FLUSHED);
    queue->next = queue->head;
}
