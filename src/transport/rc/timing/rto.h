/* The time that a requester waits before it retransmits on a network, long before the ACK timer expires: the last
 * packets of a message may be lost without a gap that the responder could report, and so may its NAK. Some round
 * trips of silence are reason enough to retransmit; only the ACK timer counts retries. Each wait is twice as long as
 * the last one (RFC 6298, RFC 8985 call these retransmission timeout and tail loss probe). Pure, as rc.h says. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/nanos.h"

struct rto {
    nanos deadline;   /* NANOS_NEVER: it waits for nothing, or only for the ACK timer */
    nanos round_trip; /* smoothed; 0: not known yet */
    nanos timed_at;   /* when the packet timed_psn left */
    uint32_t timed_psn;
    uint8_t retransmits; /* repeats without an answer since something was acknowledged */
    bool timing;
};

void rto_start(struct rto *);

/* Notes that a packet leaves, `anew`: for the first time. `most`: the ACK timer's period; a longer timeout is not
 * set. */
void rto_sent(struct rto *, uint32_t psn, bool anew, nanos most, nanos now);

/* Notes that everything before acked_psn has arrived; `waiting`: more is in flight. */
void rto_acknowledged(struct rto *, uint32_t acked_psn, bool waiting, nanos most, nanos now);

/* Notes a retransmission: for this deadline (`early`) or for another reason. */
void rto_retransmitted(struct rto *, bool early, nanos most, nanos now);

/* Stops the timer, as nothing is in flight, or an RNR wait has begun. */
void rto_stop(struct rto *);
