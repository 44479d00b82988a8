/* Finds the faster way for many small WRITEs. What the requester does by itself is a system call, half a microsecond of
 * one processor, which up to 16 WRITEs that are posted together share. A WRITE through the ring costs less if the other side has a processor to take it, and
 * so many are on their way that no thread waits. That can't be known, so the ring is tried: after many direct WRITEs
 * with hardly a pause, which is checked at each sixteenth, some thousands are sent through the ring, for the other side
 * has to wake up first, and the program may wait for completions now and then. If the ring was faster, it gets the next
 * thousands, too; otherwise all are direct for a while, each time for longer. A single WRITE whose answer the program
 * waits for begins no trial. The measure is the processor time of the thread, with waits for places in the
 * ring, so that others' work on a busy machine does not count.
 *
 * verbs/chooser/polled.h chooses for work whose completion the program waits for, by the time from one to the next. The
 * program waits for no WRITE of a stream, so that time would show only how fast it posts. Measured in turn: without
 * this chooser a WRITE of a stream to a sleeping peer takes 7 times as long; if polled.h's clock took its place, a
 * WRITE to a peer that looks at its memory would take 1.5 times as long (docs/evidence/one-sided.md). Pure; under the
 * owner's lock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/likely.h"
#include "base/nanos.h"

enum {
    STREAM_LENGTH_MAX = 1024,    /* longer WRITEs cost a copy more in the ring */
    STREAM_WINDOW = 16,          /* WRITEs between two looks at the clock, which costs a fiftieth of a short access */
    STREAM_MEASURED = 16,        /* WRITEs without a pause, after which the direct way is measured */
    STREAM_BEGINS = 64,          /* WRITEs without a pause that are a stream */
    STREAM_PAYS_FROM = 32,       /* fewer packets in the ring do not show its speed */
    STREAM_ENOUGH = 4096,        /* packets of a trial */
    STREAM_AGAIN = 8192,         /* direct WRITEs after the ring was slower, and twice as many the next time, */
    STREAM_AGAIN_MOST = 1 << 20, /* up to this number */
    STREAM_TRIALS = 256,         /* trials that paid, after which the direct way is measured anew */
};

static const nanos stream_longest = 20 * NANOS_MILLISECOND; /* the longest trial */
/* the other side may need this time to wake up; after it the ring must be at least a quarter as fast */
static const nanos stream_grace = NANOS_MILLISECOND;

struct stream {
    nanos begun;   /* when the last timed WRITE began; 0: no WRITE was timed since a trial began */
    nanos busy;    /* the thread's processor time when measuring or the trial began */
    nanos look_at; /* a trial is not judged before this time */
    uint32_t took; /* nanoseconds of the last timed direct WRITE */
    uint32_t each; /* nanoseconds of one WRITE of the stream */
    uint32_t psn;  /* the PSN when the trial began */
    int32_t count; /* WRITEs without a pause; below 0: this many until the ring is tried again */
    int32_t next;  /* the count at which the next WRITE is timed, STREAM_WINDOW after the last timed one */
    int32_t first; /* the count when measuring began; 0: not yet */
    int32_t again; /* direct WRITEs after the next slower trial; 0: STREAM_AGAIN */
    uint16_t paid; /* trials in a row that paid */
    bool trial;    /* the ring is tried */
    bool timing;   /* the next direct WRITE is timed */
};

/* Returns true if the next WRITE, of this length, should be sent through the ring, as the packet of this PSN. Called
 * while nothing is on its way. False for a WRITE longer than STREAM_LENGTH_MAX. `clock` (clock_now) and `busy`
 * (clock_busy) are called now and then. */
bool stream_takes_ring(struct stream *, uint32_t length, uint32_t psn, nanos (*clock)(void), nanos (*busy)(void));

/* Notes that the WRITE was done directly with later ones, `count` altogether. Not called for longer WRITEs and for
 * READs, whose time is a pause. */
void stream_went(struct stream *, uint32_t count, nanos (*clock)(void));
