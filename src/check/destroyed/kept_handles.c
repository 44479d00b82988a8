#include "check/destroyed/kept_handles.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "calls/handle.h"

enum { KEPT = 1 << 10 };

/* The handles that were destroyed last, in a ring. */
static _Atomic(void *) kept[KEPT];
static atomic_uint next;

/* Keeps the memory of a handle, and frees the handle that was kept longest. Under any lock; thread-safe. */
static void keep_handle(void *memory)
{
    unsigned at = atomic_fetch_add(&next, 1) % KEPT;
    free(atomic_exchange(&kept[at], memory));
}

void kept_handles_begin(void)
{
    handle_free = keep_handle;
}
