/* The names of calls to trace. */
#pragma once

#include <stdbool.h>

/* Returns whether each name, with commas between them, is a call's, with or without "ibv_" or "rdma_". False after a
 * sentence about the first name that is not. */
bool trace_calls_check(const char *calls);
