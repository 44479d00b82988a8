/* With --check=pages: the program's calls that map, protect or move memory at a place of its choice. The checker opens
 * before what it has closed there, so that it never opens what the program has mapped since. */
#ifndef CHECK_OUTSIDE_REMAPS_H
#define CHECK_OUTSIDE_REMAPS_H

#include <stddef.h>

/* Before the program runs. */
void remaps_begin(void);

/* For calls that are seen elsewhere (frees.h): before this memory is unmapped. Where another thread has the checker's
 * lock nothing is opened, as the call may be made by the thread itself. */
void remaps_forget(const void *memory, size_t length);

#endif
