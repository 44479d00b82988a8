/* The names of calls to trace. */
#pragma once

#include <stdbool.h>

/* Returns whether each name, with commas between them, and "!" before the first for all calls but these, is a call's,
 * with or without "ibv_" or "rdma_". False after a
 * sentence about the first name that is not. */
bool trace_calls_check(const char *calls);
