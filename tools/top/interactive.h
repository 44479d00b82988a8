/* `softverbs top` on a terminal. */
#ifndef TOOLS_TOP_INTERACTIVE_H
#define TOOLS_TOP_INTERACTIVE_H

#include "top/rows.h"

/* Shows the processes of the directory until a key or a signal ends it; begins with this choice. The exit status. */
int interactive_run(const char *directory, const struct top_choice *, double interval);

#endif
