/* The effects of a link on the frames that go over it in one direction. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct quality {
    double rate;           /* bits in a second; 0: no limit */
    int64_t delay, jitter; /* nanoseconds; each frame draws its delay from delay - jitter to delay + jitter */
    int64_t sockets;       /* nanoseconds; each frame that is not RoCE draws up to so much more */
    double loss;           /* the share of frames that is lost */
    double queue;          /* bytes that may wait for their turn; while more wait, frames are lost */
    double ecn;            /* while more than `ecn` bytes wait, frames are marked; 0: never */
    bool down;
};

enum { QUALITY_WORDS = 256 };

/* The quality of a wire. */
extern const struct quality quality_perfect;

/* Changes what `text` names: rate=10Gbit, delay=5us, jitter=1us, sockets=2ms, loss=0.1%, queue=1M, ecn or ecn=64K,
 * down, up, clear, and mtu=9000, which sets *mtu. False: `why` is a sentence, and nothing has changed. */
bool quality_change(struct quality *, const char *text, uint32_t *mtu, char *why, size_t size);

/* Writes the quality, without its queue, in words that each follow a blank; " perfect": nothing else is to be said. */
void quality_print(const struct quality *, char *text, size_t size);
