/* How long a requester waits before it retransmits on a network, long before the ACK timer runs out: the last packets
 * of a message may be lost without a gap that the responder could complain of, and so may its NAK. Some round trips of
 * silence are reason enough to retransmit; that costs no retry, of which the ACK timer alone counts, and waits twice as
 * long each time (RFC 6298, RFC 8985 call these retransmission timeout and tail loss probe). Pure, as rc.h says. */
#ifndef TRANSPORT_RC_RTO_H
#define TRANSPORT_RC_RTO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/nanos.h"

struct rto {
    nanos deadline;   /* NANOS_NEVER: nothing is waited for, or not by this clock */
    nanos round_trip; /* smoothed; 0: not known yet */
    nanos timed_at;   /* when the packet timed_psn left */
    uint32_t timed_psn;
    uint8_t repeats; /* in vain, since something was acknowledged */
    bool timing;
};

void rto_start(struct rto *);

/* A packet leaves, `anew` for the first time. `most`: the ACK timer's period; a timeout that is not shorter is none.
 */
void rto_sent(struct rto *, uint32_t psn, bool anew, nanos most, nanos now);

/* Everything before acked_psn has arrived; `waiting`: more is in flight. */
void rto_acknowledged(struct rto *, uint32_t acked_psn, bool waiting, nanos most, nanos now);

/* Something is retransmitted: by this deadline (`early`) or for another reason. */
void rto_retransmitted(struct rto *, bool early, nanos most, nanos now);

/* Nothing is waited for, or an RNR wait has begun. */
void rto_stop(struct rto *);

#endif
