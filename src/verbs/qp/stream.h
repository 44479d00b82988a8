/* Finds the faster way for many small WRITEs. Each that the requester does by itself is a system call, half a
 * microsecond of one processor. Through the ring one after the other costs less, if the other side has a processor to
 * take them and so many are on their way that no thread waits. That can't be known, so it is tried: when many were done
 * directly with hardly anything between them, which is looked at each sixteenth, the next go through the ring: some
 * thousands, for the other side has to
 * wake up first, and the program may come to wait for its completions now and then. If that was faster, so do the next
 * thousands; otherwise none for a while, each time for longer. A WRITE that comes alone, with an answer waited for, is
 * always done directly. The measure is the time that the thread had of a processor, waiting for places in the ring
 * included, so that others' work on a busy machine counts for neither. Pure; under the owner's lock. */
#ifndef VERBS_QP_STREAM_H
#define VERBS_QP_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/likely.h"
#include "base/nanos.h"

enum {
    STREAM_LENGTH_MAX = 1024,    /* longer ones cost a copy more in the ring */
    STREAM_WINDOW = 16,          /* so many between two looks at the clock, which costs a fiftieth of a short access; */
    STREAM_MEASURED = 16,        /* from here on the direct way is measured, once so many came without a pause; */
    STREAM_BEGINS = 64,          /* so many are a stream */
    STREAM_PAYS_FROM = 32,       /* fewer in the ring say nothing of its speed */
    STREAM_ENOUGH = 4096,        /* packets of a trial */
    STREAM_AGAIN = 8192,         /* so many go directly after the ring was slower, and twice as many the next time, */
    STREAM_AGAIN_MOST = 1 << 20, /* up to this */
    STREAM_TRIALS = 256,         /* that paid, after which the direct way is measured anew */
};

static const nanos stream_longest = 20 * NANOS_MILLISECOND; /* a trial */
/* for the wake-up of the other side: then at least a quarter as fast */
static const nanos stream_grace = NANOS_MILLISECOND;

struct stream {
    nanos begun;   /* the last that was timed; 0: none, so no time passed before the next */
    nanos busy;    /* the thread's time when measuring began, of the stream or the trial */
    nanos look_at; /* of a trial: not judged before */
    uint32_t took; /* the same, nanoseconds of one WRITE */
    uint32_t each; /* of the stream, likewise */
    uint32_t psn;  /* with which the trial began */
    int32_t count; /* without a pause; below 0: so many until the ring is tried again; */
    int32_t next;  /* the count from which on the next is timed, STREAM_WINDOW above that when `begun` was */
    int32_t first; /* the count when measuring began; 0: not yet */
    int32_t again; /* how many that are, the next time; 0: STREAM_AGAIN */
    uint16_t paid; /* trials in a row */
    bool trial;    /* the ring is tried */
    bool timing;   /* the next that is done directly is timed */
};

/* There is a WRITE of this length, and nothing on its way: returns true if it shall go through the ring, as the packet
 * of this PSN. One longer than STREAM_LENGTH_MAX never does, at any time. `clock` (clock_now) and `busy` (clock_busy)
 * are asked now and then. */
bool stream_takes_ring(struct stream *, uint32_t length, uint32_t psn, nanos (*clock)(void), nanos (*busy)(void));

/* It did not, and has been done with those behind it, `count` altogether. Not for longer ones, nor for READs: time that
 * passes with those is a pause. */
void stream_went(struct stream *, uint32_t count, nanos (*clock)(void));

#endif
