/* Waking a process that sleeps. Its attention, in memory that both share, says whether it does.
 *
 * The one who waits says so; the one who sends looks. No wake-up is lost (Dekker's argument):
 *     sender:  writes the ring;                  full fence;  loads attention   (doorbell_ring)
 *     sleeper: stores SLEEPING into attention;   full fence;  looks at the rings (attention_sleep, then the caller)
 * If the sender loads AWAKE, its load came before the sleeper's store, so its write to the ring came before the
 * sleeper's look. Of several senders only the one whose exchange succeeds rings.
 *
 * The sender's fence would cost it a third of the time that a small message takes. Sleeping is rare, so where the
 * kernel offers it the sleeper fences for both (`fences`): its fence falls somewhere into the sender's sequence; if
 * before the load, the load sees SLEEPING; if after, the write to the ring is visible when the sleeper looks. */
#ifndef LINK_DOORBELL_H
#define LINK_DOORBELL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "link/mail.h"

enum { ATTENTION_AWAKE = 0, ATTENTION_SLEEPING = 1 };

enum { MAIL_NAME_MAX = 104 };

/* On a cache line of its own. */
struct attention {
    atomic_uint state;  /* ATTENTION_AWAKE, ATTENTION_SLEEPING */
    atomic_uint fences; /* the sleeper fences in senders, too, if they have prepared for it */
};

struct doorbell {
    struct attention *attention; /* of the process to wake */
    bool prepared;               /* we have done fence_everywhere_prepare */
    int socket;                  /* ours, to send from */
    struct mail mail;            /* who we are, and to_generation */
    char name[MAIL_NAME_MAX];
};

/* After a batch: wakes the process if it sleeps. Never blocks; thread-safe. */
void doorbell_ring(const struct doorbell *);

/* Says that senders have to ring from now on; look at the rings afterwards, then sleep. */
void attention_sleep(struct attention *);

#endif
