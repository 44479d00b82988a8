#include "link/doorbell.h"

#include <time.h>

#include "base/uncancelled.h"
#include "link/fence.h"

static bool is_sleeping(const struct doorbell *doorbell)
{
    struct attention *attention = doorbell->attention;
    if (doorbell->prepared && atomic_load_explicit(&attention->fences, memory_order_relaxed))
        fence_compiler();
    else
        fence_full();
    return atomic_load_explicit(&attention->state, memory_order_relaxed) == ATTENTION_SLEEPING;
}

void doorbell_ring(const struct doorbell *doorbell)
{
    unsigned expected = ATTENTION_SLEEPING;
    if (!is_sleeping(doorbell) ||
        !atomic_compare_exchange_strong(&doorbell->attention->state, &expected, ATTENTION_AWAKE))
        return;
    struct mail mail = doorbell->mail;
    mail.kind = MAIL_DOORBELL;
    mail_send(doorbell->socket, doorbell->name, &mail, -1); /* a full queue is readable, so as good as a ring */
}

/* The kernel may begin to refuse (a sandbox that came later): from then on senders fence for themselves, and those that
 * are just in between have become visible long before a millisecond is over. */
static void stop_fencing(struct attention *attention)
{
    atomic_store(&attention->fences, 0);
    int before = uncancelled_begin();
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    uncancelled_end(before);
}

void attention_sleep(struct attention *attention)
{
    atomic_exchange(&attention->state, ATTENTION_SLEEPING);
    fence_full();
    if (atomic_load_explicit(&attention->fences, memory_order_relaxed) && !fence_everywhere())
        stop_fencing(attention);
}
