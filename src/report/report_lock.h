#pragma once

#include "base/lock.h"

/* Takes the lock of a queue pair or of the connection manager, which others hold for a moment each; false: it is held
 * for long, as by a program that stopped between wr_start and wr_complete, and is not waited for. */
bool report_lock(struct lock *);
