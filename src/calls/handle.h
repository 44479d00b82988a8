/* The memory of what programs name by a handle, when it was destroyed. */
#ifndef CALLS_HANDLE_H
#define CALLS_HANDLE_H

/* What frees it: free(3), or what the checker has put there, which keeps it for a while, so that a late use of the
 * handle is seen and does no harm. Written before the program runs. */
extern void (*handle_free)(void *);

#endif
