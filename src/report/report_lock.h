#pragma once

#include "base/lock.h"

/* Takes the lock of a queue pair or of the connection manager, which threads hold for a moment each. False after some
 * tries: a thread keeps it, as a program does that stopped between wr_start and wr_complete. */
bool report_lock(struct lock *);
