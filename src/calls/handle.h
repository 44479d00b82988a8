/* Frees the memory of a destroyed object that programs name by a handle. */
#pragma once

/* free(3), or a function of the checker, which keeps the memory for a while, so that a late use of the handle is seen
 * and does no harm. Set before the program runs. */
extern void (*handle_free)(void *);
