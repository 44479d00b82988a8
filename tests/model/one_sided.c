/* Processes of the model publish nothing, so what the code under test asks of that has one answer. The race between an
 * access and what withdraws it is in src/link/direct_test.c. */
#include <errno.h>

#include "ipc/state.h"
#include "link/direct.h"

int published_create(struct published *published)
{
    *published = (struct published){.descriptor = -1};
    return ENOSYS;
}

void published_close(struct published *published)
{
}

void published_open(struct published *published, bool open)
{
}

int published_map(struct published *published, int descriptor)
{
    return ENOSYS;
}

enum direct_outcome direct_do(struct direct_desk *desk, struct direct_seats *seats, const struct published *published,
                              pid_t pid, const struct direct_access *access)
{
    return DIRECT_DECLINED;
}

void direct_close(struct direct_desk *desk)
{
}

void node_quiesce(struct node *node)
{
}
