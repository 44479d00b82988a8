#include "verbs/object/acknowledgements.h"

#include <errno.h>
#include <stdatomic.h>
#include <time.h>

#include "diag/log.h"
#include "diag/sentence.h"

/* The object of the thread that began to wait last. */
static struct {
    const char *_Atomic object; /* NULL: no thread waits */
    _Atomic uint32_t handle;
    _Atomic int32_t events;
} missing;

bool acknowledgements_missing(struct acknowledgements_missing *to)
{
    to->object = atomic_load(&missing.object);
    to->handle = atomic_load(&missing.handle);
    to->events = atomic_load(&missing.events);
    return to->object;
}

/* Logs which object waits: its events may have been acknowledged at another object, which does not end the wait. */
static void note(const struct object *object, int32_t events)
{
    if (events > 0)
        log_reason(LOG_WARN, REASON_UNACKNOWLEDGED, "destroying the " OBJECT_NAMED " waits for %d event%s",
                   object->class->name, object->handle, events, plural((unsigned)events));
    else
        log_reason(LOG_WARN, REASON_ACKNOWLEDGED_TOO_OFTEN,
                   "destroying the " OBJECT_NAMED " waits for ever: %d more event%s acknowledged than fetched",
                   object->class->name, object->handle, -events, events == -1 ? " was" : "s were");
    atomic_store(&missing.handle, object->handle);
    atomic_store(&missing.events, events);
    atomic_store(&missing.object, object->class->name);
}

void acknowledgements_wait(const struct object *object, pthread_mutex_t *mutex, pthread_cond_t *cond,
                           const uint32_t *acknowledged, uint32_t fetched)
{
    struct timespec soon; /* by the clock of the public condition variable */
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_sec++;
    pthread_mutex_lock(mutex);
    while (*acknowledged != fetched && pthread_cond_timedwait(cond, mutex, &soon) != ETIMEDOUT)
        ;
    if (*acknowledged != fetched)
        note(object, (int32_t)(fetched - *acknowledged));
    while (*acknowledged != fetched)
        pthread_cond_wait(cond, mutex);
    atomic_store(&missing.object, NULL);
    pthread_mutex_unlock(mutex);
}
