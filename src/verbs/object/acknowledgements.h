/* Objects are destroyed once the program has acknowledged all their events that it has fetched: ibv_destroy_cq(3),
 * ibv_ack_async_event(3). */
#pragma once

#include <pthread.h>

#include "verbs/object/object.h"

/* Waits until *acknowledged, which `mutex` guards and `cond` signals, has reached `fetched`. A wait of more than a
 * second is logged, as a program that forgets to acknowledge waits for ever. */
void acknowledgements_wait(const struct object *, pthread_mutex_t *mutex, pthread_cond_t *cond,
                           const uint32_t *acknowledged, uint32_t fetched);

/* Writes an object of this process whose destruction has waited for more than a second; false: no object's has.
 * Thread-safe. */
struct acknowledgements_missing {
    const char *object; /* "completion queue" */
    uint32_t handle;
    int32_t events; /* below 0: more were acknowledged than fetched */
};
bool acknowledgements_missing(struct acknowledgements_missing *);
