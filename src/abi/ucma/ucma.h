/* Commands of librdmacm: what it writes to its device rdma_cm, in ABI version 4. calls/ucma_layout.h has the layouts of
 * the commands; src/cm executes them. */
#pragma once

#include <stddef.h>

#include "abi/ucma/event_channel.h"

/* Serves a command that the program wrote to the channel's descriptor `fd`. Returns 0 or a positive errno. Thread-safe;
 * only a command that waits for events is a cancellation point. */
int ucma_write(struct event_channel *, int fd, const void *bytes, size_t length);
