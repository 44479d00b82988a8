#include "check/shadow/event_count.h"

#include <pthread.h>

/* The counts wrap. */
static int difference(const struct shadow *shadow)
{
    return (int)(shadow->events.fetched - shadow->events.acknowledged);
}

unsigned event_count_open(const struct shadow *shadow)
{
    return difference(shadow) > 0 ? (unsigned)difference(shadow) : 0;
}

unsigned event_count_excess(const struct shadow *shadow)
{
    return difference(shadow) < 0 ? (unsigned)-difference(shadow) : 0;
}

bool event_count_is_others(const struct shadow *shadow)
{
    return shadow->events.fetcher != (uintptr_t)pthread_self();
}

static bool has_new_excess(const struct shadow *shadow)
{
    return event_count_excess(shadow) && !shadow->events.excess;
}

static void count_both(struct shadow *shadow, unsigned fetched, unsigned acknowledged)
{
    shadow->events.fetched += fetched;
    shadow->events.acknowledged += acknowledged;
    if (fetched)
        shadow->events.fetcher = (uintptr_t)pthread_self();
    if (!event_count_excess(shadow))
        shadow->events.excess = NULL;
}

static void note_excess(enum shadow_kind kind, const void *handle)
{
    struct place here;
    place_here(&here);
    shadow_lock();
    struct shadow *shadow = shadow_find(kind, handle);
    if (shadow && has_new_excess(shadow))
        shadow->events.excess = here.count ? here.frames[0] : NULL;
    shadow_unlock();
}

/* Another thread's fetch may be about to be counted, so an excess is no finding yet. */
void event_count(enum shadow_kind kind, const void *handle, unsigned fetched, unsigned acknowledged)
{
    shadow_lock();
    struct shadow *shadow = shadow_find(kind, handle);
    if (shadow)
        count_both(shadow, fetched, acknowledged);
    bool begins = shadow && has_new_excess(shadow);
    shadow_unlock();
    if (begins)
        note_excess(kind, handle);
}
