#include "verbs/queue/cq_entries.h"

#include <time.h>

#include "base/uncancelled.h"

void cq_consumer_wait(struct cq *cq)
{
    lock_take(&cq->consumer);
}

/* Returns when no thread looks at entries. The kernel may begin to refuse fences (by a later sandbox): a thread that is
 * just between its two steps has become visible long before a millisecond is over, and later threads see `stopped`. */
static void stop_takers(struct cq *cq)
{
    atomic_store(&cq->stopped, true);
    int before = uncancelled_begin();
    if (!fence_everywhere())
        nanosleep(&(struct timespec){.tv_nsec = NANOS_MILLISECOND}, NULL);
    uncancelled_end(before);
    for (unsigned round = 0; atomic_load_explicit(&cq->taking, memory_order_acquire); round++)
        lock_wait(round);
}

void cq_stop(struct cq *cq)
{
    lock_take(&cq->lock);
    if (!cq->slow.takes)
        stop_takers(cq);
}

void cq_resume(struct cq *cq)
{
    atomic_store_explicit(&cq->stopped, false, memory_order_release);
    lock_release(&cq->lock);
}

/* The thread that stops the takers holds cq->lock until they may continue. */
bool cq_wait_to_take(struct cq *cq)
{
    cq_end_taking_freely(cq);
    lock_take(&cq->lock);
    return true;
}
