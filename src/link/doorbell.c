#include "link/doorbell.h"

#include <errno.h>
#include <time.h>

#include "base/likely.h"
#include "base/uncancelled.h"
#include "link/fence.h"

/* The attention word, loaded after all that we have written. */
static unsigned look(const struct doorbell *doorbell)
{
    struct attention *attention = doorbell->attention;
    if (doorbell->prepared && atomic_load_explicit(&attention->fences, memory_order_acquire) == FENCES_OFFERED)
        fence_compiler();
    else
        fence_full();
    return atomic_load_explicit(&attention->state, memory_order_relaxed);
}

/* Ends the sleep that the word showed, if it still lasts. */
static void mark_awake(struct attention *attention, unsigned seen)
{
    atomic_compare_exchange_strong(&attention->state, &seen, seen & ~(unsigned)ATTENTION_SLEEPING);
}

int doorbell_insist(const struct doorbell *doorbell)
{
    struct control_message message = doorbell->message;
    if (doorbell->waker >= 0)
        return control_wake(doorbell->waker);
    message.kind = CONTROL_DOORBELL;
    return control_send(doorbell->socket, doorbell->name, &message, -1);
}

/* A separate function, so that a caller that finds no thread asleep saves no registers for it. */
cold static int doorbell_wake(const struct doorbell *doorbell, unsigned seen)
{
    int error = doorbell_insist(doorbell);
    if (!error)
        mark_awake(doorbell->attention, seen);
    return error == EAGAIN || error == ECONNREFUSED || error == ENOENT ? 0 : error;
}

int doorbell_ring(const struct doorbell *doorbell)
{
    unsigned seen = look(doorbell);
    return unlikely(seen & ATTENTION_SLEEPING) ? doorbell_wake(doorbell, seen) : 0;
}

/* The kernel may begin to refuse (a sandbox that came later): from then on senders fence for themselves, and those that
 * are just in between have become visible long before a millisecond is over. */
static void stop_fencing(struct attention *attention)
{
    atomic_store(&attention->fences, FENCES_REFUSED);
    int before = uncancelled_begin();
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    uncancelled_end(before);
}

void attention_fence(struct attention *attention)
{
    unsigned fences = FENCES_NOT_YET;
    if (atomic_load_explicit(&attention->fences, memory_order_relaxed) == FENCES_NOT_YET)
        atomic_compare_exchange_strong(&attention->fences, &fences, FENCES_OFFERED);
}

unsigned attention_sleep(struct attention *attention)
{
    unsigned seen = atomic_load_explicit(&attention->state, memory_order_relaxed);
    while (!atomic_compare_exchange_weak(&attention->state, &seen, (seen | ATTENTION_SLEEPING) + ATTENTION_NEXT))
        ;
    fence_full();
    if (atomic_load_explicit(&attention->fences, memory_order_relaxed) == FENCES_OFFERED && !fence_everywhere())
        stop_fencing(attention);
    return (seen | ATTENTION_SLEEPING) + ATTENTION_NEXT;
}

void attention_wake(struct attention *attention)
{
    unsigned seen = atomic_load_explicit(&attention->state, memory_order_relaxed);
    if (seen & ATTENTION_SLEEPING)
        mark_awake(attention, seen);
}
