/* The rules of scripts that hold in front of another libibverbs: those of calls of libibverbs. Packets, timers, helper
 * threads and the ends of work are inside softverbs' own devices. */
#pragma once

#include <stddef.h>

#include "script/rule.h"

/* False: `why` has a sentence about the first rule that does not hold. */
bool script_holds_around(const struct script *, char *why, size_t size);
