/* `softverbs top` on a terminal. */
#pragma once

#include "top/rows.h"

/* Shows the processes of the directory until a key or a signal ends it; begins with this choice. The exit status. */
int interactive_run(const char *directory, const struct top_choice *, double interval);
