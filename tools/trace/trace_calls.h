/* The names of calls that a trace is asked for. */
#ifndef TOOLS_TRACE_CALLS_H
#define TOOLS_TRACE_CALLS_H

#include <stdbool.h>

/* Returns whether each name is that of a call, with or without "ibv_" or "rdma_"; there are commas between them. False
 * after a sentence about the first that is none. */
bool trace_calls_check(const char *calls);

#endif
