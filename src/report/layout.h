/* How a debugger finds the objects and stories of this process, in its memory or in its core file, without debug
 * information: a table in the library's own data (layout.def), which begins with LAYOUT_MAGIC and its own address. The
 * library needs no symbols for it. lib/softverbs-gdb.py reads it; docs/how-to/stories.md says how. */
#pragma once

struct process;

#define LAYOUT_MAGIC "softverbs layout 3" /* the number grows when struct layout (layout.c) changes, not its lists */

/* Enters the process into the table. Under process->control, or before another thread knows the process. */
void layout_begin(const struct process *);

/* Takes the process out of the table: it ends, or it is the copy in a child of fork(2). */
void layout_end(const struct process *);
