/* Finds the faster way for work that its requester may do by itself, with a system call that needs no processor of the
 * peer, or leave to the peer, as packets in its ring. Which is faster depends on the peer. The program's time is
 * measured for POLLED_WINDOW works at once, without packets and through the ring; the slower way is tried again ever
 * more rarely.
 *
 * For short work the peer's attention is looked at as well, which each of its sleeps changes. A thread of the peer that
 * polls takes a packet in a quarter of the time of the system call; a peer that sleeps has to be woken for it. A peer
 * that did not sleep during POLLED_FIRST works polls, and the next works use its ring until it sleeps. When a poller
 * stops, the peer's helper takes the last packet, and then sleeps: that one work is late. Such delays must not cost a
 * program that alternates more than a tenth of its time: so the next works are done without a packet, for ten times the
 * lost time, unless enough works used the ring before to pay for it.
 *
 * Streams of small WRITEs, for which the program does not wait, have verbs/chooser/stream.h. Measured in turn: without
 * this chooser a WRITE to a peer that polls takes 4 times as long (docs/evidence/one-sided.md). Pure; under the owner's
 * lock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/nanos.h"

enum {
    POLLED_FIRST = 128,      /* works during which the peer must have been awake */
    POLLED_AFTER_SLOW = 512, /* works without a packet after the ring was slower, and twice as many the next time;
                                after late work as many as last ten times its delay, */
    POLLED_MOST = 1 << 20,   /* up to this number */
    POLLED_PAYS = 8192,      /* works through the ring that are worth a late one */
    POLLED_WINDOW = 32,      /* works that are measured together */
    POLLED_CLIPPED = 16,     /* a window longer than this many usual ones counts as so long: the program paused */
    POLLED_LOSS = 16,        /* lost time, in windows, at which the ring counts as slower */
    POLLED_CREDIT = 32,      /* gained time, in windows, that is remembered at most */
};

/* The longest delay of late work; a longer one is a pause of the program. */
static const nanos polled_late_most = 10 * NANOS_MILLISECOND;

struct polled {
    nanos begun;        /* when the window began; or 0 */
    uint32_t first;     /* the window's first work */
    uint32_t last;      /* the last work that was asked about */
    uint32_t attention; /* the attention at that time */
    uint32_t count;     /* works since the attention changed, or since the ring is used */
    uint32_t needed;    /* the count at which the ring is used; 0: POLLED_FIRST */
    uint32_t usual;     /* the median time of a work without a packet, in nanoseconds; 0: not known */
    uint32_t direct;    /* the mean of these times, which include the program's own; 0: not known */
    int64_t lost;       /* by how much a work through the ring was slower than `direct`, summed over the windows */
    bool rings;         /* the ring is used */
};

/* Returns true if the next work, number `work`, should use the ring. Numbers of longer works may be further apart.
 * `attention` has another value after each sleep of the peer, and is odd while it sleeps; a caller to whom that does
 * not matter passes 0. `clock` is called now and then. */
bool polled_takes_ring(struct polled *, uint32_t work, uint32_t attention, nanos (*clock)(void));

/* Notes that another kind of work is next, whose time does not count. */
void polled_pauses(struct polled *);
