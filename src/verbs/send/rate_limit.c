#include "verbs/send/rate_limit.h"

#include "runtime/clock.h"
#include "verbs/qp/qp_doors.h"
#include "verbs/qp/qp_engine.h"

/* The time by which a queue pair may be ahead of its rate if the program names no burst: a timer's delay. */
static const nanos default_ahead = 2 * NANOS_MILLISECOND;

static nanos time_of(const struct qp *qp, uint64_t bytes)
{
    const uint64_t nanos_of_kilobit_byte = 8 * NANOS_MILLISECOND;
    return bytes * nanos_of_kilobit_byte / qp->rate_limit.rate;
}

static uint32_t mtu_of(const struct qp *qp)
{
    const uint32_t port_mtu = 4096;
    return qp->attr.path_mtu ? 128u << qp->attr.path_mtu : port_mtu;
}

void rate_limit_set(struct qp *qp, const struct ibv_qp_rate_limit_attr *attr)
{
    lock_assert_held(&qp->lock);
    qp->attr.rate_limit = qp->rate_limit.rate = attr->rate_limit;
    qp_judge_watch(qp);
    if (!qp_datapath(qp)->disturbance) /* else disturbed output may wait */
        qp->rate_limit.wake = NANOS_NEVER;
    struct engine_settings settings = *engine_settings_of(qp_engine(qp));
    settings.in_pieces = attr->rate_limit || qp->traits & QP_NAMES_SRQ;
    qp_door_configure(qp, &settings);
    if (!attr->rate_limit)
        return;
    nanos burst = time_of(qp, attr->max_burst_sz);
    nanos packet = time_of(qp, attr->typical_pkt_sz ? attr->typical_pkt_sz : mtu_of(qp));
    qp->rate_limit.ahead = burst > packet ? burst - packet : 0;
    if (!attr->max_burst_sz)
        qp->rate_limit.ahead = default_ahead;
    qp->rate_limit.until = clock_now();
}

bool rate_limit_holds(struct qp *qp)
{
    lock_assert_held(&qp->lock);
    nanos now = clock_now();
    if (!qp->rate_limit.rate || qp->rate_limit.until <= now + qp->rate_limit.ahead)
        return false;
    qp->rate_limit.wake = qp->rate_limit.until - qp->rate_limit.ahead;
    qp_expire_by(qp, qp->rate_limit.wake);
    return true;
}

void rate_limit_count(struct qp *qp, uint64_t bytes)
{
    nanos now = clock_now();
    if (!qp->rate_limit.rate)
        return;
    if (qp->rate_limit.until < now)
        qp->rate_limit.until = now;
    qp->rate_limit.until += time_of(qp, bytes);
}
