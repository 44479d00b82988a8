/* Finds the faster way for many small WRITEs. Each WRITE that the requester does by itself is a system call, half a
 * microsecond of one processor. Through the ring a WRITE costs less, if the other side has a processor to take it and
 * enough are on their way that no thread waits. That can't be known, so it is tried: after many direct WRITEs with
 * hardly a pause, which is checked at each sixteenth, some thousands are sent through the ring, for the other side has
 * to wake up first, and the program may wait for completions now and then. If that was faster, the next thousands are
 * sent so, too; otherwise all are direct for a while, each time for longer. A single WRITE whose answer the program
 * waits for is always done directly. The measure is the processor time of the thread, with waits for places in the
 * ring, so that others' work on a busy machine does not count.
 *
 * verbs/chooser/polled.h chooses for work whose completion the program waits for, by the time from one to the next. The
 * program waits for no WRITE of a stream, so that time would show only how fast it posts. Measured in turn: without
 * this chooser a WRITE of a stream to a sleeping peer takes 7 times as long; if polled.h's clock took its place, a
 * WRITE to a peer that looks at its memory would take 1.5 times as long (docs/evidence/one-sided.md). Pure; under the
 * owner's lock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/likely.h"
#include "base/nanos.h"

enum {
    STREAM_LENGTH_MAX = 1024,    /* longer ones cost a copy more in the ring */
    STREAM_WINDOW = 16,          /* WRITEs between two looks at the clock, which costs a fiftieth of a short access */
    STREAM_MEASURED = 16,        /* after this many without a pause the direct way is measured */
    STREAM_BEGINS = 64,          /* this many are a stream */
    STREAM_PAYS_FROM = 32,       /* fewer in the ring do not show its speed */
    STREAM_ENOUGH = 4096,        /* packets of a trial */
    STREAM_AGAIN = 8192,         /* direct ones after the ring was slower, and twice as many the next time, */
    STREAM_AGAIN_MOST = 1 << 20, /* up to this */
    STREAM_TRIALS = 256,         /* trials that paid, after which the direct way is measured anew */
};

static const nanos stream_longest = 20 * NANOS_MILLISECOND; /* the longest trial */
/* the time for the wake-up of the other side: then at least a quarter as fast */
static const nanos stream_grace = NANOS_MILLISECOND;

struct stream {
    nanos begun;   /* when the last timed one began; 0: the next follows without a pause */
    nanos busy;    /* the thread's processor time when the stream or trial began */
    nanos look_at; /* a trial is not judged before */
    uint32_t took; /* nanoseconds of one WRITE of the trial */
    uint32_t each; /* nanoseconds of one WRITE of the stream */
    uint32_t psn;  /* the PSN when the trial began */
    int32_t count; /* WRITEs without a pause; below 0: this many until the ring is tried again */
    int32_t next;  /* the count at which the next is timed, STREAM_WINDOW after `begun` */
    int32_t first; /* the count when measuring began; 0: not yet */
    int32_t again; /* direct ones after the next slower trial; 0: STREAM_AGAIN */
    uint16_t paid; /* trials in a row */
    bool trial;    /* the ring is tried */
    bool timing;   /* the next direct one is timed */
};

/* Returns true if the next WRITE, of this length, should be sent through the ring, as the packet of this PSN; nothing
 * is on its way. False for one longer than STREAM_LENGTH_MAX. `clock` (clock_now) and `busy` (clock_busy) are asked now
 * and then. */
bool stream_takes_ring(struct stream *, uint32_t length, uint32_t psn, nanos (*clock)(void), nanos (*busy)(void));

/* Notes that it was done directly with later ones, `count` altogether. Not for longer ones, nor for READs: their time
 * is a pause. */
void stream_went(struct stream *, uint32_t count, nanos (*clock)(void));
