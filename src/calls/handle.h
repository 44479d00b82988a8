/* The memory of an object that programs name by a handle, when it was destroyed. */
#ifndef CALLS_HANDLE_H
#define CALLS_HANDLE_H

/* Frees it: free(3), or a function of the checker, which keeps it for a while, so that a late use of the handle is seen
 * and does no harm. Written before the program runs. */
extern void (*handle_free)(void *);

#endif
