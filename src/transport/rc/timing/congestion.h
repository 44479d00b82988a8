/* The number of packets that a requester may have in flight, on a network that drops packets when it is full:
 * additive increase, multiplicative decrease, after a slow start (RFC 5681, with packets for bytes). The window
 * shrinks at most once for the packets that were in flight together. Congestion notifications (RoCEv2 annex,
 * A17.9.3) shrink it like a loss, but less, as nothing was lost (RFC 8511), only while something is in flight, and
 * never below 16 packets: they have no PSN, so they are easy to forge. Pure, as rc.h says. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct congestion {
    uint32_t window;     /* packets in flight, at least 1 */
    uint32_t most;       /* the largest window */
    uint32_t threshold;  /* up to here the window grows with each packet, beyond it by one each window */
    uint32_t credit;     /* packets acknowledged since it last grew by one */
    uint32_t shrunk_psn; /* packets before this PSN were in flight when the window last shrank */
    bool shrunk;         /* shrunk_psn is valid */
    bool adapts;         /* false: the window is `most` for ever */
};

/* Starts with a window of `first` packets, which grows up to `most`. 0: it is `most` for ever, as the link never
 * loses. */
void congestion_start(struct congestion *, uint32_t first, uint32_t most);

/* Notes that this many packets, all before acked_psn, have arrived. */
void congestion_acknowledged(struct congestion *, uint32_t packets, uint32_t acked_psn);

enum congestion_sign {
    CONGESTION_NOTIFIED, /* a packet was marked */
    CONGESTION_GAP,      /* the receiver missed a packet, and others arrived */
    CONGESTION_SILENCE,  /* no answer arrived in time */
};

/* Notes that a packet between acked_psn and sent_psn met congestion. */
void congestion_met(struct congestion *, enum congestion_sign, uint32_t acked_psn, uint32_t sent_psn);
