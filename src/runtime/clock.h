/* The clock of everything that runs in real time. Layers below get the time from their callers. Thread-safe. */
#pragma once

#include "base/nanos.h"

/* CLOCK_MONOTONIC. */
nanos clock_now(void);

/* Returns CLOCK_MONOTONIC for a tenth of the price: not before now, and at most some milliseconds after it. Good for
 * deadlines that may be late but not early, such as those of ACK timers (IBA 9.7.6.1.3 allows four times the value). */
nanos clock_about_now(void);

/* The processor time that the calling thread has used; a system call. */
nanos clock_busy(void);
