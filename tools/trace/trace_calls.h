/* The names of calls to trace. */
#pragma once

#include <stdbool.h>

/* Returns whether each name of the list is a call's, with or without "ibv_" or "rdma_". Commas are between the names; a
 * "!" before the first means all other calls. False after a sentence about the first name that is no call's. */
bool trace_calls_check(const char *calls);
