/* The process that a debugger is to see (softverbs sim --gdb). */
#pragma once

#include <stdbool.h>

/* Called with the token when a process begins, which a fork (`by_fork`) or a program does. If it is the one that is to
 * be seen, it returns when the launcher has attached the debugger; all others wait meanwhile, as they have no token. */
void debug_begin(bool by_fork);
