/* How a debugger finds the objects and stories of this process, in its memory or in its core file, without debug
 * information: a table in the library's own data (layout.def), which begins with LAYOUT_MAGIC and its own address. The
 * library needs no symbols for it. lib/softverbs-gdb.py reads it; docs/how-to/stories.md says how. */
#pragma once

struct process;

#define LAYOUT_MAGIC "softverbs layout 3" /* counts up with struct layout (layout.c), not with its lists */

/* This is the process from now on. Under process->control, or before anybody else knows it. */
void layout_begin(const struct process *);

/* It is no more, or is a child's copy. */
void layout_end(const struct process *);
