#include "transport/rc/timing/congestion.h"

#include "wire/psn.h"

enum {
    LEAST = 4,           /* so that a gap is mostly noticed by the packets after it */
    LEAST_NOTIFIED = 16, /* anybody can forge notifications; lasting congestion also loses packets */
};

void congestion_start(struct congestion *congestion, uint32_t first, uint32_t most)
{
    *congestion = (struct congestion){.most = most, .threshold = most, .adapts = first && first < most};
    congestion->window = congestion->adapts ? first : most;
}

void congestion_acknowledged(struct congestion *congestion, uint32_t packets, uint32_t acked_psn)
{
    if (!congestion->adapts)
        return;
    if (congestion->shrunk && psn_distance(acked_psn, congestion->shrunk_psn) >= 0)
        congestion->shrunk = false;
    if (congestion->window < congestion->threshold) {
        congestion->window += packets;
    } else {
        congestion->credit += packets;
        if (congestion->credit >= congestion->window) {
            congestion->credit = 0;
            congestion->window++;
        }
    }
    if (congestion->window > congestion->most)
        congestion->window = congestion->most;
}

static uint32_t at_least(const struct congestion *congestion, uint32_t window)
{
    uint32_t least = LEAST < congestion->most ? LEAST : congestion->most;
    return window < least ? least : window;
}

/* Returns the window that remains after a sign. */
static uint32_t shrunk_by(const struct congestion *congestion, enum congestion_sign sign)
{
    uint32_t window = congestion->window, notified = window - window / 5;
    if (sign != CONGESTION_NOTIFIED)
        return at_least(congestion, window / 2);
    return notified < LEAST_NOTIFIED ? LEAST_NOTIFIED : notified;
}

/* Returns true for a notification when nothing is in flight, or the window is at the least that notifications may
 * leave. A smaller window must grow: it would stay the smallest if others fill the queue in which packets are
 * marked. */
static bool is_ignored(const struct congestion *congestion, enum congestion_sign sign, uint32_t acked_psn,
                       uint32_t sent_psn)
{
    return sign == CONGESTION_NOTIFIED && (acked_psn == sent_psn || congestion->window <= LEAST_NOTIFIED);
}

void congestion_met(struct congestion *congestion, enum congestion_sign sign, uint32_t acked_psn, uint32_t sent_psn)
{
    if (!congestion->adapts)
        return;
    bool known = congestion->shrunk && psn_distance(acked_psn, congestion->shrunk_psn) < 0;
    if ((known && sign != CONGESTION_SILENCE) || is_ignored(congestion, sign, acked_psn, sent_psn))
        return;
    if (!known)
        congestion->threshold = shrunk_by(congestion, sign);
    congestion->window = sign == CONGESTION_SILENCE ? at_least(congestion, 0) : congestion->threshold;
    congestion->credit = 0;
    congestion->shrunk_psn = sent_psn;
    congestion->shrunk = true;
}
