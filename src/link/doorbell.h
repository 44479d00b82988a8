/* Waking a process that sleeps. Its attention, in memory that both share, says whether it does.
 *
 * The one who waits says so; the one who sends looks. No wake-up is lost (Dekker's argument):
 *     sender:  writes the ring;                  full fence;  loads attention   (doorbell_ring)
 *     sleeper: stores SLEEPING into attention;   full fence;  looks at the rings (attention_sleep, then the caller)
 *
 * If the sender loads AWAKE, its load came before the sleeper's store, so its write to the ring came before the
 * sleeper's look.
 *
 * A sender that loads SLEEPING sends a message first and marks the sleeper AWAKE afterwards, so that others need not
 * ring, too. A sender that dies or is stopped at any step takes nothing along: before the message the word still says
 * SLEEPING and the next sender rings; after it the message is there. Its mark may come late, when the sleeper has been
 * awake and sleeps again: so each sleep has a number, and the mark is an exchange that succeeds for that sleep only. (A
 * mark can only hit a wrong sleep if 2^31 sleeps pass between its load and its exchange, and just that many.) Without a
 * message there is no mark: a refused message leaves SLEEPING for the next sender.
 *
 * The sender's fence would cost it a third of the time that a small message takes. Sleeping is rare, so where the
 * kernel offers it the sleeper fences for both (`fences`): its fence falls somewhere into the sender's sequence; if
 * before the load, the load sees SLEEPING; if after, the write to the ring is visible when the sleeper looks.
 *
 * A sleeper may begin to fence at any time (attention_fence). A sender that sees it already, while the sleep that goes
 * on did not, loads attention after `fences` was set, and that was after the sleeper's store of SLEEPING: it rings. */
#ifndef LINK_DOORBELL_H
#define LINK_DOORBELL_H

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

/* On a separate cache line. */
struct attention {
    atomic_uint state;  /* the number of the latest sleep times ATTENTION_NEXT, + ATTENTION_SLEEPING while it lasts, +
                           ATTENTION_MARKS */
    atomic_uint fences; /* FENCES_OFFERED: the sleeper fences in senders, too, if they have prepared for it */
    struct marks marks;
};

struct doorbell {
    struct attention *attention;    /* of the process to wake */
    bool prepared;                  /* we have done fence_everywhere_prepare */
    int waker;                      /* the eventfd that wakes it, if it is this process; -1: it takes a message */
    int socket;                     /* ours, to send from */
    struct control_message message; /* our process, and to_generation */
    char name[CONTROL_NAME_MAX];
};

/* After a batch: wakes the process if it sleeps. Never blocks; thread-safe. 0, or an errno: the message could not be
 * sent, ring the doorbell again. (A receiver's queue that is full wakes it as well as a message does, and one that is
 * gone needs none: both are 0.) */
int doorbell_ring(const struct doorbell *);

/* Its two parts: the attention word, loaded after all that we have written; and waking a process whose word, as it was
 * seen, has ATTENTION_SLEEPING. */
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

/* Sends the message at any attention, and marks nothing. 0 or errno. */
int doorbell_insist(const struct doorbell *);

/* Says that senders have to ring from now on; look at the rings afterwards, then sleep. Any thread of the process; each
 * call begins another sleep. Returns which, for attention_lasts. */
unsigned attention_sleep(struct attention *);

/* Some senders are asked for marks; look at their rings afterwards. And: none is any more. Both leave sleeps as they
 * are. One caller at a time. */
void attention_want_marks(struct attention *);
void attention_want_no_marks(struct attention *);

/* From now on attention_sleep fences in senders, too, unless the kernel has refused that before. Thread-safe. */
void attention_fence(struct attention *);

/* Says that they need not, until the next sleep begins. Any thread of the process. */
void attention_wake(struct attention *);

/* Returns the number of the sleep with which some thread of the process returned from attention_sleep, if it goes on;
 * 0: it does not. Then another thread need not begin one: senders that have loaded AWAKE had written their rings before
 * that fence, and all others ring. */
static inline bool attention_lasts(const struct attention *attention, unsigned sleep)
{
    unsigned state = atomic_load_explicit(&attention->state, memory_order_relaxed);
    return sleep & ATTENTION_SLEEPING && !((state ^ sleep) & ~(unsigned)ATTENTION_MARKS);
}

static inline bool attention_sleeps(const struct attention *attention)
{
    return atomic_load_explicit(&attention->state, memory_order_relaxed) & ATTENTION_SLEEPING;
}

#endif
