#include "verbs/queue/srq.h"

void srq_raise(struct srq *srq, enum ibv_event_type type)
{
    async_raise(srq->object.context, (struct ibv_async_event){.element.srq = &srq->ibv, .event_type = type});
}
