#include "transport/rc/patience.h"

#include "wire/psn.h"

static const nanos granularity = 4 * NANOS_MILLISECOND; /* of the owner's clock, and of schedulers */

void patience_start(struct patience *patience)
{
    *patience = (struct patience){.deadline = NANOS_NEVER};
}

static void arm(struct patience *patience, nanos most, nanos now)
{
    enum { DOUBLINGS = 10 };
    unsigned doublings = patience->repeats < DOUBLINGS ? patience->repeats : DOUBLINGS;
    nanos wait = (granularity + 2 * patience->round_trip) << doublings;
    patience->deadline = patience->round_trip && wait < most ? now + wait : NANOS_NEVER;
}

void patience_sent(struct patience *patience, uint32_t psn, bool anew, nanos most, nanos now)
{
    if (anew && !patience->timing) {
        patience->timing = true;
        patience->timed_psn = psn;
        patience->timed_at = now;
    }
    if (patience->deadline == NANOS_NEVER)
        arm(patience, most, now);
}

/* Karn: a packet that was repeated tells nothing, as its answer may be to either. */
static void measure(struct patience *patience, uint32_t acked_psn, nanos now)
{
    if (!patience->timing || psn_distance(acked_psn, patience->timed_psn) <= 0)
        return;
    nanos sample = now > patience->timed_at ? now - patience->timed_at : 0; /* owners mix clocks of different grain */
    patience->timing = false;
    patience->round_trip = patience->round_trip ? (7 * patience->round_trip + sample) / 8 : sample;
    patience->round_trip += !patience->round_trip;
}

void patience_acknowledged(struct patience *patience, uint32_t acked_psn, bool waiting, nanos most, nanos now)
{
    measure(patience, acked_psn, now);
    patience->repeats = 0;
    patience->deadline = NANOS_NEVER;
    if (waiting)
        arm(patience, most, now);
}

void patience_repeats(struct patience *patience, bool early, nanos most, nanos now)
{
    patience->timing = false;
    patience->repeats += early && patience->repeats < UINT8_MAX;
    arm(patience, most, now);
}

void patience_stop(struct patience *patience)
{
    patience->timing = false;
    patience->deadline = NANOS_NEVER;
}
