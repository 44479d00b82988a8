#include "verbs/object/acknowledgements.h"

#include <errno.h>
#include <time.h>

#include "diag/log.h"
#include "verbs/object/words.h"

void acknowledgements_wait(const struct object *object, pthread_mutex_t *mutex, pthread_cond_t *cond,
                           const uint32_t *acknowledged, uint32_t fetched)
{
    struct timespec soon; /* of the clock that the public condition variable has */
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_sec++;
    pthread_mutex_lock(mutex);
    while (*acknowledged != fetched && pthread_cond_timedwait(cond, mutex, &soon) != ETIMEDOUT)
        ;
    if (*acknowledged != fetched)
        log_reason(LOG_WARN, REASON_UNACKNOWLEDGED, "destroying the %s with handle %u waits for %u events",
                   object->class->name, object->handle, fetched - *acknowledged);
    while (*acknowledged != fetched)
        pthread_cond_wait(cond, mutex);
    pthread_mutex_unlock(mutex);
}
