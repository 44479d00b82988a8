/* ibv_fork_init(3): fork(2) needs no preparation. No memory is pinned and no device writes to it, so the copy-on-write
 * pages of a child do no harm. */
#include <infiniband/verbs.h>
#include <stddef.h>

#include "abi/export.h"

/* Exported, but declared in no public header. */
int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);

EXPORT int ibv_fork_init(void)
{
    return 0;
}

EXPORT enum ibv_fork_status ibv_is_fork_initialized(void)
{
    return IBV_FORK_UNNEEDED;
}

EXPORT int ibv_dontfork_range(void *base, size_t size)
{
    return 0;
}

EXPORT int ibv_dofork_range(void *base, size_t size)
{
    return 0;
}
