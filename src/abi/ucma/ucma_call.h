/* The functions that serve the commands of librdmacm, and their helpers. For ucma*.c only. */
#pragma once

#include "abi/ucma/event_channel.h"
#include "calls/command.h"
#include "gsi/cm/cm.h"

/* Each serves one command and returns 0 or a positive errno. The caller holds the connection manager's lock, except for
 * commands that wait. */
#define COMMAND(number, page, how, serve, layout, least, reply, object) int serve(struct ucma_call *);
#include "calls/ucma.def"

/* Finds the channel's identifier of this number. ENOENT: no such identifier; EINVAL: it belongs to another channel. */
int ucma_find(struct ucma_call *, uint32_t number, struct identifier **);

/* Writes the answer to the program's memory, cut to the room that the program has for it. */
void ucma_respond(const struct ucma_call *, uint64_t response, const void *reply, size_t length);
