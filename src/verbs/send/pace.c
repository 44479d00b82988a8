#include "verbs/send/pace.h"

#include <errno.h>

#include "diag/log.h"
#include "runtime/clock.h"

/* How far ahead of its rate a queue pair may get when the program names no burst: by as much as a timer may be late. */
static const nanos default_ahead = 2 * NANOS_MILLISECOND;

static nanos time_of(const struct qp *qp, uint64_t bytes)
{
    const uint64_t nanos_of_kilobit_byte = 8 * NANOS_MILLISECOND;
    return bytes * nanos_of_kilobit_byte / qp->pace.rate;
}

static uint32_t mtu_of(const struct qp *qp)
{
    const uint32_t port_mtu = 4096;
    return qp->attr.path_mtu ? 128u << qp->attr.path_mtu : port_mtu;
}

void pace_set(struct qp *qp, const struct ibv_qp_rate_limit_attr *attr)
{
    lock_assert_held(&qp->lock);
    qp->attr.rate_limit = qp->pace.rate = attr->rate_limit;
    qp->pace.wake = NANOS_NEVER;
    if (qp_is_reliable(qp))
        qp->rc.settings.in_pieces = attr->rate_limit != 0;
    if (!attr->rate_limit)
        return;
    nanos burst = time_of(qp, attr->max_burst_sz);
    nanos packet = time_of(qp, attr->typical_pkt_sz ? attr->typical_pkt_sz : mtu_of(qp));
    qp->pace.ahead = burst > packet ? burst - packet : 0;
    if (!attr->max_burst_sz)
        qp->pace.ahead = default_ahead;
    qp->pace.until = clock_now();
}

bool pace_holds(struct qp *qp)
{
    lock_assert_held(&qp->lock);
    nanos now = clock_now();
    if (qp->pace.until <= now + qp->pace.ahead)
        return false;
    qp->pace.wake = qp->pace.until - qp->pace.ahead;
    qp_expire_by(qp, qp->pace.wake);
    return true;
}

void pace_count(struct qp *qp, uint64_t bytes)
{
    nanos now = clock_now();
    if (qp->pace.until < now)
        qp->pace.until = now;
    qp->pace.until += time_of(qp, bytes);
}
