#include "check/outside/acknowledged.h"

#include <stddef.h>
#include <stdint.h>

#include "check/shadow/shadow.h"

enum { REMEMBERED = 256, ALIGNMENT = 16 };

static struct acknowledged {
    const void *event;
    struct place by;
} acknowledged[REMEMBERED];

static struct acknowledged *room_of(const void *event)
{
    shadow_assert_locked();
    return &acknowledged[(uintptr_t)event / ALIGNMENT % REMEMBERED];
}

void acknowledged_add(const void *event, const struct place *by)
{
    *room_of(event) = (struct acknowledged){event, *by};
}

void acknowledged_remove(const void *event)
{
    if (room_of(event)->event == event)
        room_of(event)->event = NULL;
}

const struct place *acknowledged_find(const void *event)
{
    return event && room_of(event)->event == event ? &room_of(event)->by : NULL;
}
