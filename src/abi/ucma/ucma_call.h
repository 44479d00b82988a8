/* The functions that serve the commands of librdmacm, and what they have in common. For ucma*.c only. */
#ifndef ABI_UCMA_UCMA_CALL_H
#define ABI_UCMA_UCMA_CALL_H

#include "abi/ucma/event_channel.h"
#include "calls/command.h"
#include "gsi/cm.h"

/* Serve one command each: 0 or a positive errno. Under the lock of the connection manager, except those that wait. */
#define COMMAND(number, page, how, serve, layout, least, answer, object) int serve(struct ucma_call *);
#include "calls/ucma.def"

/* The channel's identifier of this number: ENOENT, or EINVAL when it is another channel's. */
int ucma_find(struct ucma_call *, uint32_t number, struct identifier **);

/* Writes the answer to the program's memory, as much of it as there is room for. */
void ucma_respond(const struct ucma_call *, uint64_t response, const void *answer, size_t length);

#endif
