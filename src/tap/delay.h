/* Frames that a fault holds back (SOFTVERBS_FAULT): copies, which leave when they are due or when enough others have
 * overtaken them. Frames that are due at the same time leave in the order of their arrival. The helper's timers send
 * them, so all leave even if the process becomes idle. */
#pragma once

#include "tap/taps.h"

/* The receiver of a frame, and its stream. */
struct delay_way {
    struct taps *taps;
    struct peer *peer; /* on this host; NULL: the link leads to another host */
    struct link *link;
    uint64_t stream;
    uint32_t releases; /* taps->releases, before it was known that the frame is held */
};

/* Keeps a copy of the frame until `due`, or until the stream has reached frame number `behind` (0: until due).
 * False: too many are kept, or no memory; the frame is lost as in a network. Between the link's begin and end. */
bool delay_keep(const struct delay_way *, const struct frame *, nanos due, uint64_t behind);

/* Notes that frame `number` of the stream has left, or leaves when it is `due` (0: it has left). Frames that waited
 * for it leave right after it, if the link has room. Between the link's begin and end. */
void delay_overtaken(const struct delay_way *, uint64_t number, nanos due);

/* The due time of a frame that waits until it is released; it does not wait if that has happened meanwhile. */
#define DELAY_HELD (NANOS_NEVER - 1)

/* Sends all held frames as soon as the helper can. `taps` NULL: no frame is held. Thread-safe, under any lock but
 * taps->lock. */
void delay_release_held(struct taps *);

/* Sends the frames that are due: the callback of taps->timer. */
void delay_expired(struct timer *, nanos now);

/* Sends all frames that wait for a link to another host, which is about to be closed. */
void delay_forget(struct taps *, struct link *);

/* Returns true if no frame waits for this link. Thread-safe, under any lock but taps->lock. */
bool delay_is_quiet(struct taps *, const struct link *);

/* Sends all frames. No thread may send any more. */
void delay_flush(struct taps *);
