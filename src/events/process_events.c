#include "events/process_events.h"

#include "base/read_clock.h"
#include "base/static_lock.h"

enum { ROUNDS = 400 };

static struct last_events events;

/* The lock is only tried: a thread that holds another innermost lock may note an event, too, and a handler of a signal
 * may interrupt the holder. If it can't be had, an event is missing. */
LOCK_STATIC(keeping, LOCK_INNERMOST);

static bool take(void)
{
    for (unsigned round = 0; round < ROUNDS; round++, lock_wait(round))
        if (lock_try(&keeping))
            return true;
    return false;
}

cold void process_events_note(enum event event, uint32_t more, uint64_t a, uint64_t b)
{
    if (!take())
        return;
    story_put(events.records, sizeof events.records, &events.at, read_clock(CLOCK_MONOTONIC), event, more, a, b);
    lock_release(&keeping);
}

struct last_events process_events_copy(void)
{
    struct last_events copy = {0};
    if (!take())
        return copy;
    copy = events;
    lock_release(&keeping);
    return copy;
}

void process_events_forget(void)
{
    if (!take())
        return;
    events = (struct last_events){0};
    lock_release(&keeping);
}
