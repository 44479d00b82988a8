/* The program's calls that map, protect or move memory at a place of its choice, for --check=pages. The checker first
 * opens its protected pages there, so that it never opens memory that the program has mapped since. */
#pragma once

#include <stddef.h>

/* Sees these calls from now on. Before the program runs. */
void remaps_begin(void);

/* Opens protected pages for a call that frees.h sees, before it unmaps this memory. If another thread has the checker's
 * lock nothing is opened, as this thread itself may hold it. */
void remaps_forget(const void *memory, size_t length);
