/* Calls of the program that take memory away from regions and from work in flight. unmaps.h, truncates.h and frees.h
 * see them, and they are reported here after the call: by then the program's own hooks of the same calls (UCX,
 * libfabric and Open MPI have some) have deregistered what they keep registered.
 *
 * These calls come in signal handlers and in a fork's handlers, and from allocators: nothing is waited for, and if
 * another thread has the shadow's lock nothing is seen. errno stays. */
#pragma once

#include "check/hooks.h"

/* Begins a call: sets `before` of the loss, whose other members are set. */
void losses_begin(struct memory_loss *);

/* Reports the work or region that the call, which has succeeded, has taken this memory from. */
void losses_end(const struct memory_loss *);

/* Leaves out calls of the library that has this function of an allocator, unless it is the C library: it gives up
 * memory that the program has freed before, and may hold locks that reporting needs. If the program itself has the
 * function, only regions that its calls take memory from are left out. Before the program runs. */
void losses_leave_out(const void *function);
