#include "abi/ucma/ucma_call.h"

#include <errno.h>
#include <string.h>

#include "events/refusal.h"

int ucma_find(struct ucma_call *call, uint32_t number, struct identifier **identifier)
{
    *identifier = identifier_find(&call->channel->cm->manager, number);
    if (!*identifier)
        return refuse(ENOENT, REASON_CM_NO_IDENTIFIER, "identifier %u", number);
    if ((*identifier)->account.queue != &call->channel->queue)
        return refuse(EINVAL, REASON_CM_OTHER_CHANNEL, "identifier %u, and the channel is descriptor %d", number,
                      call->fd);
    return 0;
}

void ucma_respond(const struct ucma_call *call, uint64_t response, const void *reply, size_t length)
{
    memcpy((void *)(uintptr_t)response, reply, length < call->out ? length : call->out);
}
