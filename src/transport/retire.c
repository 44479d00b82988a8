#include "transport/retire.h"

void retire_head(struct send_queue *queue, struct host *host, enum ibv_wc_status status, enum reason reason)
{
    const struct work *work = send_queue_at(queue, queue->head);
    if (queue->next == queue->head)
        queue->next++;
    queue->head++;
    host->operations->sent(host, work, status, reason);
}

void retire_transmitted(struct send_queue *queue, struct host *host)
{
    while (queue->head != queue->next)
        retire_head(queue, host, IBV_WC_SUCCESS, REASON_NONE);
}

void retire_all(struct send_queue *queue, struct host *host)
{
    while (queue->head != queue->tail)
        retire_head(queue, host, IBV_WC_WR_FLUSH_ERR, REASON_FLUSHED);
}

void retire_failed(struct send_queue *queue, struct host *host, enum ibv_wc_status status, enum reason reason)
{
    retire_head(queue, host, status, reason);
    retire_all(queue, host);
}
