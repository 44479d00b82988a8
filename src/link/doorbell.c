#include "link/doorbell.h"

#include <errno.h>
#include <time.h>

#include "base/likely.h"
#include "base/uncancelled.h"
#include "link/fence.h"

static bool is_same_sleep(unsigned one, unsigned other)
{
    return !((one ^ other) & ~(unsigned)ATTENTION_MARKS);
}

/* Ends the sleep that the word showed, if it still lasts. */
static void mark_awake(struct attention *attention, unsigned sleep)
{
    unsigned seen = sleep;
    while (is_same_sleep(seen, sleep) &&
           !atomic_compare_exchange_weak(&attention->state, &seen, seen & ~(unsigned)ATTENTION_SLEEPING))
        ;
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
cold int doorbell_wake(const struct doorbell *doorbell, unsigned seen)
{
    int error = doorbell_insist(doorbell);
    if (!error)
        mark_awake(doorbell->attention, seen);
    return error == EAGAIN || error == ECONNREFUSED || error == ENOENT ? 0 : error;
}

int doorbell_ring(const struct doorbell *doorbell)
{
    unsigned seen = doorbell_look(doorbell);
    return unlikely(seen & ATTENTION_SLEEPING) ? doorbell_wake(doorbell, seen) : 0;
}

/* The kernel may begin to refuse (by a later sandbox): senders then fence for themselves, and the stores of senders
 * just in between have become visible long before a millisecond is over. */
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

/* Makes earlier stores of the calling thread visible to each sender that loads afterwards. */
static void fence_for_senders(struct attention *attention)
{
    fence_full();
    if (atomic_load_explicit(&attention->fences, memory_order_relaxed) == FENCES_OFFERED && !fence_everywhere())
        stop_fencing(attention);
}

void attention_want_marks(struct attention *attention)
{
    atomic_fetch_or(&attention->state, ATTENTION_MARKS);
    fence_for_senders(attention);
}

void attention_want_no_marks(struct attention *attention)
{
    atomic_fetch_and(&attention->state, ~(unsigned)ATTENTION_MARKS);
}

unsigned attention_sleep(struct attention *attention)
{
    unsigned seen = atomic_load_explicit(&attention->state, memory_order_relaxed);
    while (!atomic_compare_exchange_weak(&attention->state, &seen, (seen | ATTENTION_SLEEPING) + ATTENTION_NEXT))
        ;
    fence_for_senders(attention);
    return (seen | ATTENTION_SLEEPING) + ATTENTION_NEXT;
}

void attention_wake(struct attention *attention)
{
    unsigned seen = atomic_load_explicit(&attention->state, memory_order_relaxed);
    if (seen & ATTENTION_SLEEPING)
        mark_awake(attention, seen);
}
