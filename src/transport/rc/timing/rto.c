#include "transport/rc/timing/rto.h"

#include "wire/psn.h"

static const nanos granularity = 4 * NANOS_MILLISECOND; /* of the owner's clock, and of schedulers */

void rto_start(struct rto *rto)
{
    *rto = (struct rto){.deadline = NANOS_NEVER};
}

static void arm(struct rto *rto, nanos most, nanos now)
{
    enum { DOUBLINGS = 10 };
    unsigned doublings = rto->retransmits < DOUBLINGS ? rto->retransmits : DOUBLINGS;
    nanos wait = (granularity + 2 * rto->round_trip) << doublings;
    rto->deadline = rto->round_trip && wait < most ? now + wait : NANOS_NEVER;
}

void rto_sent(struct rto *rto, uint32_t psn, bool anew, nanos most, nanos now)
{
    if (anew && !rto->timing) {
        rto->timing = true;
        rto->timed_psn = psn;
        rto->timed_at = now;
    }
    if (rto->deadline == NANOS_NEVER)
        arm(rto, most, now);
}

/* Karn: a packet that was repeated measures nothing, as its answer may be to either. */
static void measure(struct rto *rto, uint32_t acked_psn, nanos now)
{
    if (!rto->timing || psn_distance(acked_psn, rto->timed_psn) <= 0)
        return;
    nanos sample = nanos_since(rto->timed_at, now);
    rto->timing = false;
    rto->round_trip = rto->round_trip ? (7 * rto->round_trip + sample) / 8 : sample;
    rto->round_trip += !rto->round_trip;
}

void rto_acknowledged(struct rto *rto, uint32_t acked_psn, bool waiting, nanos most, nanos now)
{
    measure(rto, acked_psn, now);
    rto->retransmits = 0;
    rto->deadline = NANOS_NEVER;
    if (waiting)
        arm(rto, most, now);
}

void rto_retransmitted(struct rto *rto, bool early, nanos most, nanos now)
{
    rto->timing = false;
    rto->retransmits += early && rto->retransmits < UINT8_MAX;
    arm(rto, most, now);
}

void rto_stop(struct rto *rto)
{
    rto->timing = false;
    rto->deadline = NANOS_NEVER;
}
