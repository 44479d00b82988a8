/* Waking a process that sleeps. Its attention word, in memory that both share, says whether it sleeps.
 *
 * The waiting process stores that it sleeps; the sending process looks. No wake-up is lost (Dekker's argument):
 *     sender:  writes the ring;                  full fence;  loads attention   (doorbell_ring)
 *     sleeper: stores SLEEPING into attention;   full fence;  looks at the rings (attention_sleep, then the caller)
 *
 * If the sender loads AWAKE, its load was before the sleeper's store, so its write to the ring was before the sleeper's
 * look.
 *
 * A sender that loads SLEEPING sends a message first and marks the sleeper AWAKE afterwards, so that others need not
 * ring, too. A sender that dies or is stopped at any step loses no wake-up: before the message the word still says
 * SLEEPING and the next sender rings; after it the message is there. Its mark may be late, when the sleeper has been
 * awake and sleeps again: so each sleep has a number, and the mark is an exchange that succeeds for that sleep only. (A
 * mark can only hit a wrong sleep if 2^31 sleeps pass between its load and its exchange, and just that many.) Without a
 * message no mark is made: a refused message leaves SLEEPING for the next sender.
 *
 * The sender's fence would cost it a third of the time that a small message takes. Sleeping is rare, so where the
 * kernel offers it the sleeper fences for both (`fences`): its fence falls somewhere into the sender's sequence; if
 * before the load, the load sees SLEEPING; if after, the write to the ring is visible when the sleeper looks.
 *
 * A sleeper may begin to fence at any time (attention_fence). If the present sleep began without that, a sender that
 * sees FENCES_OFFERED loads attention after `fences` was set, so after the sleeper's store of SLEEPING: it rings. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "link/control.h"
#include "link/fence.h"
#include "link/marks.h"

enum { CONTROL_NAME_MAX = 104 };

enum {
    ATTENTION_SLEEPING = 1,
    ATTENTION_MARKS = 2, /* some senders are asked for marks (marks.h) */
    ATTENTION_NEXT = 4
};
enum { FENCES_NOT_YET, FENCES_OFFERED, FENCES_REFUSED /* by the kernel, for good */ };

/* A process's attention, on a separate cache line. */
struct attention {
    atomic_uint state;  /* the number of the latest sleep times ATTENTION_NEXT, + ATTENTION_SLEEPING while it lasts, +
                           ATTENTION_MARKS */
    atomic_uint fences; /* FENCES_OFFERED: the sleeper fences in senders, too, if they are prepared */
    struct marks marks;
};

struct doorbell {
    struct attention *attention;    /* of the process to wake */
    bool prepared;                  /* fence_everywhere_prepare returned true in our process */
    int waker;                      /* the eventfd that wakes the process, if it is ours; -1: it takes a message */
    int socket;                     /* ours, to send from */
    struct control_message message; /* our process, and to_generation */
    char name[CONTROL_NAME_MAX];
};

/* Wakes the process if it sleeps, after a batch. Never blocks; thread-safe. 0, or an errno: the message could not be
 * sent, ring the doorbell again. (A full queue wakes its receiver as a message does, and a receiver that is gone
 * needs no message: both are 0.) */
int doorbell_ring(const struct doorbell *);

/* The two parts of doorbell_ring: doorbell_look loads the attention word after all that we have written;
 * doorbell_wake wakes a process whose word was seen with ATTENTION_SLEEPING. */
static inline unsigned doorbell_look(const struct doorbell *doorbell)
{
    struct attention *attention = doorbell->attention;
    if (doorbell->prepared && atomic_load_explicit(&attention->fences, memory_order_acquire) == FENCES_OFFERED)
        fence_compiler();
    else
        fence_full();
    return atomic_load_explicit(&attention->state, memory_order_acquire);
}
int doorbell_wake(const struct doorbell *, unsigned seen);

/* Sends the message whatever the attention word is, and marks nothing. 0 or errno. */
int doorbell_insist(const struct doorbell *);

/* Says that senders have to ring from now on; look at the rings afterwards, then sleep. Any thread of the process;
 * each call begins another sleep. Returns its number, for attention_lasts. */
unsigned attention_sleep(struct attention *);

/* attention_want_marks asks senders for marks; look at their rings afterwards. attention_want_no_marks ends that.
 * Both leave sleeps unchanged. One caller at a time. */
void attention_want_marks(struct attention *);
void attention_want_no_marks(struct attention *);

/* Makes attention_sleep fence in senders, too, from now on, unless the kernel has refused that before. Thread-safe. */
void attention_fence(struct attention *);

/* Ends the sleep: senders need not ring until the next one begins. Any thread of the process. */
void attention_wake(struct attention *);

/* Returns true if the sleep of this number, which attention_sleep returned to some thread of the process, still
 * lasts. Then another thread need not begin one: senders that have loaded AWAKE had written their rings before that
 * fence, and all others ring. */
static inline bool attention_lasts(const struct attention *attention, unsigned sleep)
{
    unsigned state = atomic_load_explicit(&attention->state, memory_order_relaxed);
    return sleep & ATTENTION_SLEEPING && !((state ^ sleep) & ~(unsigned)ATTENTION_MARKS);
}

static inline bool attention_sleeps(const struct attention *attention)
{
    return atomic_load_explicit(&attention->state, memory_order_relaxed) & ATTENTION_SLEEPING;
}
