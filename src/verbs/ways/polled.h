/* Finds the faster way for work that its requester may do by itself, with a system call that needs no processor of the
 * peer, or leave to the peer, as packets in its ring. Which is faster depends on what the peer does. The time of the
 * program is measured, thirty works at once, those that went without a packet against those that went through the ring;
 * the slower way is tried again ever more rarely.
 *
 * For short work the peer's attention is looked at as well, which each of its sleeps changes. A thread of the peer that
 * polls takes a packet in a quarter of the time of the system call; a peer that sleeps has to be woken for it. A peer
 * that did not sleep during some tens of works polls, and the next ones go through its ring for as long as it does not
 * sleep. Of a poller that stops the peer's helper takes the last packet, and then sleeps: that one work is late. It
 * must not cost a program that alternates more than a tenth of its time: so after it the next works go without a
 * packet, for ten times as long as was lost, unless so many went through the ring before that they have paid for it.
 * Pure; under the owner's lock. */
#ifndef VERBS_WAYS_POLLED_H
#define VERBS_WAYS_POLLED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/nanos.h"

enum {
    POLLED_FIRST = 128,      /* so many works long the peer must have been awake; */
    POLLED_AFTER_SLOW = 512, /* after the ring was slower so many, and twice as many the next time; after late work as
                                many as take ten times what it took longer, */
    POLLED_MOST = 1 << 20,   /* up to this */
    POLLED_PAYS = 8192,      /* works through the ring that are worth a late one */
    POLLED_WINDOW = 32,      /* works that are measured together */
    POLLED_CLIPPED = 16,     /* one that took so many times the usual counts as that: the program paused, or had no
                                processor */
    POLLED_LOSS = 16,        /* so many windows' time was lost: the ring is slower; */
    POLLED_CREDIT = 32,      /* so much at most may have been gained before */
};

/* More that it seems to take is a pause of the program. */
static const nanos polled_late_most = 10 * NANOS_MILLISECOND;

struct polled {
    nanos begun;        /* the window; 0: there is none */
    uint32_t first;     /* work of the window */
    uint32_t last;      /* work that was asked about */
    uint32_t attention; /* as it was then */
    uint32_t count;     /* works since it changed, or since the ring is used */
    uint32_t needed;    /* before the ring is used; 0: POLLED_FIRST */
    uint32_t usual;     /* nanoseconds of a work that went without a packet, the median; 0: not known; */
    uint32_t direct;    /* the mean, with the program's own time; 0: not known */
    int64_t lost;       /* nanoseconds of a work, of all windows through the ring */
    bool rings;         /* the ring is used */
};

/* One is next, the `work`th: returns true if it is to go through the ring. Numbers of longer works may be further
 * apart. `attention`: another value after each sleep of the peer, odd while it sleeps; always 0: it does not matter.
 * `clock`: asked now and then. */
bool polled_takes_ring(struct polled *, uint32_t work, uint32_t attention, nanos (*clock)(void));

/* Another kind of work is next, whose time does not count. */
void polled_pauses(struct polled *);

#endif
