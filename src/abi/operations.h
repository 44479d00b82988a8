/* The operations that programs reach through function pointers of their context. */
#pragma once

#include "verbs/object/context.h"

/* Fills both tables of a new context; an operation that is not built gets the stub of abi/unsupported.h. */
void operations_fill(struct context *);

/* ibv_query_port(3), as programs call it through the table. */
int operations_query_port(struct ibv_context *, uint8_t port, struct ibv_port_attr *, size_t size);
