/* What a queue pair does when its time has come. */
#include "base/container.h"
#include "verbs/qp.h"
#include "verbs/traffic.h"

enum { PATIENCE_WITH_FAULTS = 8 };

/* A peer that lives and has not yet taken what was sent is slow, not lossy: no retry is spent on it, until it has been
 * so for too long. Where the user asked for faults, what it has not taken may be but the others' frames, so the timer
 * must fire now and then. */
static bool is_only_slow(struct qp *qp, nanos now)
{
    struct peer *peer = qp->peer;
    if (peer && !node_alive(qp->process->node, peer))
        qp->peer_ended = true;
    qp->rc.settings.silence = qp->peer_ended ? REASON_PEER_GONE : REASON_NONE;
    if (traffic_is_faulty(qp->process) && ++qp->postponed % PATIENCE_WITH_FAULTS == 0)
        return false;
    if (!peer || peer->gone || qp->rc.requester.rnr_waiting || peer->link->operations->consumed(peer->link))
        return false;
    enum node_presence presence = node_insist(qp->process->node, peer, now);
    if (presence == NODE_STALLED)
        qp->rc.settings.silence = REASON_PEER_STALLED;
    return presence == NODE_SLOW;
}

static void expire(struct qp *qp, nanos now)
{
    bool silent = qp_is_reliable(qp) && qp->rc.requester.deadline <= now; /* for all of the ACK timer */
    if (qp_engine_deadline(qp) > now)
        ; /* it is the rate that lets it go on */
    else if (is_only_slow(qp, now))
        rc_postpone(&qp->rc, now);
    else {
        qp->traffic.timeouts += silent && !qp->rc.requester.rnr_waiting;
        rc_expire(&qp->rc, now);
    }
    if (qp->remote && silent)
        udp_reroute(qp->remote);
    qp_transmit_guarded(qp, now);
}

void qp_expired(struct timer *timer, nanos now)
{
    struct qp *qp = container_of(timer, struct qp, timer.timer);
    lock_take(&qp->lock);
    if (qp_deadline(qp) <= now)
        expire(qp, now);
    schedule_by(&qp->process->schedule, &qp->timer, qp_watch(qp));
    lock_release(&qp->lock);
}
