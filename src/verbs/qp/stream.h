/* Which way is faster for many small WRITEs? Each that the requester does by itself is a system call, half a
 * microsecond of one processor. Through the ring one after the other costs less, if the other side has a processor to
 * take them and so many are on their way that nobody waits. That can't be known, so it is tried: when many were done
 * directly with hardly anything between them, the next go through the ring, until none is on its way; and again only if
 * that was faster. A WRITE that comes alone, with an answer waited for, is always done directly. Pure; under the
 * owner's lock. */
#ifndef VERBS_QP_STREAM_H
#define VERBS_QP_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/nanos.h"

enum {
    STREAM_LENGTH_MAX = 1024, /* longer ones cost a copy more in the ring */
    STREAM_BEGINS = 64,       /* so many without a pause are a stream */
    STREAM_PAYS_FROM = 32,    /* fewer in the ring say nothing of its speed */
    STREAM_AGAIN = 8192,      /* so many go directly after the ring was slower */
};

struct stream {
    nanos ended;   /* the last that was done directly */
    nanos begun;   /* the stream, or the trial */
    uint32_t took; /* the last, nanoseconds */
    uint32_t each; /* of the stream, likewise */
    uint32_t psn;  /* with which the trial began */
    int16_t count; /* without a pause; below 0: so many until the ring is tried again */
    bool trial;    /* the ring is tried */
};

/* There is a WRITE of this length, and nothing on its way: shall it go through the ring, as the packet of this PSN? */
bool stream_takes_ring(struct stream *, uint32_t length, uint32_t psn, nanos now);

/* It did not; this is how long it took. */
void stream_went(struct stream *, nanos begun, nanos ended);

#endif
