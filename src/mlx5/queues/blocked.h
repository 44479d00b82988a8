/* The threads that block SIGSEGV, for which a fault would be the end of the process. */
#pragma once

#include <stdbool.h>

/* Returns true if a thread of this process blocks the signal now, or the kernel does not say so (/proc). */
bool blocked_by_a_thread(void);
