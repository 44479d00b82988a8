#include "abi/ucma/ucma_call.h"

#include <errno.h>
#include <string.h>

int ucma_find(struct ucma_call *call, uint32_t number, struct identifier **identifier)
{
    call->identifier = *identifier = identifier_find(&call->channel->cm->manager, number);
    if (!*identifier)
        return ENOENT;
    return (*identifier)->account.queue == &call->channel->queue ? 0 : EINVAL;
}

void ucma_respond(const struct ucma_call *call, uint64_t response, const void *answer, size_t length)
{
    memcpy((void *)(uintptr_t)response, answer, length < call->out ? length : call->out);
}
