/* Frames that a fault holds back (SOFTVERBS_FAULT): copies, which leave when their time has come or when enough others
 * have overtaken them. Those that are due at the same time leave in the order in which they came. The helper's timers
 * send them, so none stays behind when the process goes idle. */
#ifndef TAP_DELAY_H
#define TAP_DELAY_H

#include "tap/taps.h"

/* Where a frame goes, and in which stream. */
struct delay_way {
    struct taps *taps;
    struct peer *peer; /* on this host; NULL: the link leads to another */
    struct link *link;
    uint64_t stream;
    uint32_t releases; /* taps->releases, before it was known that the frame is held */
};

/* Keeps a copy of the frame until `due`, or until the stream has come to frame number `behind` (0: until due). False:
 * there are too many, or no memory, and it is lost as in a network. Between the link's begin and end. */
bool delay_keep(const struct delay_way *, const struct frame *, nanos due, uint64_t behind);

/* Frame `number` of the stream has left, or leaves when it is `due` (0: it has left). So do those that waited for it,
 * right behind it, if the link has room. Between the link's begin and end. */
void delay_overtaken(const struct delay_way *, uint64_t number, nanos due);

/* A frame that is due then waits until it is released, and not at all if that has happened meanwhile. */
#define DELAY_HELD (NANOS_NEVER - 1)

/* All that is held leaves now, as soon as the helper comes to it. `taps` NULL: nothing is. Thread-safe, under any lock
 * but its own. */
void delay_release_held(struct taps *);

/* Sends what is due: the callback of taps->timer. */
void delay_expired(struct timer *, nanos now);

/* The link to another host is about to be closed: frames that wait for it leave now. */
void delay_forget(struct taps *, struct link *);

/* Returns true if no frame waits for this link. Thread-safe, under any lock but its own. */
bool delay_is_quiet(struct taps *, const struct link *);

/* Everything leaves now. No thread may send any more. */
void delay_flush(struct taps *);

#endif
