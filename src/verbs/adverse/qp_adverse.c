#include "verbs/adverse/qp_adverse.h"

#include <stdlib.h>

#include "link/guard.h"
#include "verbs/queue/srq.h"

/* The longest of each, unless they are scaled. Retransmission timers of peers are at least some milliseconds long. */
static const nanos read_late = 200 * NANOS_MICROSECOND, write_late = 2 * NANOS_MILLISECOND,
                   answer_late = 300 * NANOS_MICROSECOND, acknowledge_late = 200 * NANOS_MICROSECOND;

void qp_adverse_begin(struct qp *qp)
{
    struct qp_adverse *adverse = adverse_on ? calloc(1, sizeof *adverse) : NULL;
    if (!adverse)
        return;
    adverse->qp = qp;
    adverse->source = adverse_source();
    landings_begin(&adverse->landings);
    qp->rate_limit.paced = true;
    qp->rate_limit.lands = NANOS_NEVER;
    qp_datapath(qp)->adverse = adverse;
}

void qp_adverse_release(struct qp *qp)
{
    struct qp_adverse *adverse = qp_datapath(qp)->adverse;
    if (adverse)
        landings_drop(&adverse->landings);
    free(adverse);
}

/* --- leaving */

static void wake_at(struct qp *qp, nanos at)
{
    if (at < qp->rate_limit.wake)
        qp->rate_limit.wake = at;
    qp_expire_by(qp, at);
}

/* The table of the order of work without overtaking: only a READ may begin while READs and atomics are under way. */
static bool would_overtake(struct qp *qp, const struct send_queue *queue)
{
    const struct send_wqe *work = send_queue_at(queue, queue->next);
    return qp_is_reliable(qp) && work->opcode != IBV_WR_RDMA_READ && engine_reads_under_way(qp_engine(qp));
}

static bool requests_wait(struct qp *qp, struct qp_adverse *adverse, nanos now)
{
    const struct send_queue *queue = engine_queue(qp_engine(qp));
    if (queue->next == queue->tail)
        return false;
    if (adverse_on && !adverse_shows(ADVERSE_OVERTAKE) && would_overtake(qp, queue))
        return true; /* the answer brings the queue pair here again */
    if ((int32_t)(adverse->released - queue->next) > 0)
        return false;
    if (!adverse->held)
        adverse->requests_until = now + adverse_delay(&adverse->source, ADVERSE_LATE_READ, read_late);
    adverse->held = adverse->requests_until > now;
    if (!adverse->held)
        adverse->released = queue->tail;
    else
        wake_at(qp, adverse->requests_until);
    return adverse->held;
}

static bool responses_wait(struct qp *qp, const struct qp_adverse *adverse, nanos now)
{
    bool waits = adverse_on && adverse->responses_until > now;
    if (waits)
        wake_at(qp, adverse->responses_until);
    return waits;
}

bool qp_adverse_holds(struct qp *qp, bool response, nanos now)
{
    lock_assert_held(&qp->lock);
    struct qp_adverse *adverse = qp_datapath(qp)->adverse;
    if (!adverse)
        return false;
    return response ? responses_wait(qp, adverse, now) : requests_wait(qp, adverse, now);
}

/* --- arriving */

static void land(struct qp *qp, struct qp_adverse *adverse, nanos until)
{
    landings_land(&adverse->landings, &adverse->source, until);
    qp->rate_limit.lands = landings_due(&adverse->landings);
}

static bool keep_late(struct qp_adverse *adverse, uint32_t offset, const struct iovec *to)
{
    struct qp *qp = adverse->qp;
    nanos late = adverse_delay(&adverse->source, ADVERSE_LATE_WRITE, write_late);
    if (!late && landings_due(&adverse->landings) == NANOS_NEVER)
        return false;
    if (!landings_keep(&adverse->landings, &adverse->carried, offset, to, qp_flow(qp)->now + late))
        return false;
    qp->rate_limit.lands = landings_due(&adverse->landings);
    qp_expire_by(qp, qp->rate_limit.lands);
    return true;
}

/* As a payload's `pull`, of all that is stored of a packet. What could not be kept lands now, behind what was. */
static bool carry(const struct payload *payload, uint32_t offset, const struct iovec *to, uint32_t count)
{
    struct qp_adverse *adverse = payload->source;
    if (adverse->stores_late && count == 1 && keep_late(adverse, offset, to))
        return true;
    if (adverse->stores_late)
        land(adverse->qp, adverse, NANOS_NEVER);
    else if (adverse_shows(ADVERSE_PIECES)) {
        adverse_note(ADVERSE_PIECES);
        return landing_scatter(&adverse->carried, offset, to, count, &adverse->source);
    }
    return payload_copy(&adverse->carried, offset, to, count);
}

static nanos up_to_a_timer(const struct qp *qp, nanos most)
{
    enum { UNIT = 4096, PARTS = 16 };
    nanos part = ((nanos)UNIT << (qp->attr.timeout & 31)) / PARTS;
    return qp->attr.timeout && part < most ? part : most;
}

/* A READ whose answer waits is overtaken by the WRITEs behind it. */
static void delay_response(struct qp *qp, struct qp_adverse *adverse, uint32_t flags)
{
    bool answer = flags & (OP_READ | OP_ATOMIC);
    nanos now = qp_flow(qp)->now;
    if (adverse->responses_until > now || flags & OP_RESPONSE || !(flags & OP_END || answer))
        return;
    nanos delay = answer ? adverse_delay(&adverse->source, ADVERSE_OVERTAKE, up_to_a_timer(qp, answer_late))
                         : adverse_delay(&adverse->source, ADVERSE_LATE_ACKS, up_to_a_timer(qp, acknowledge_late));
    adverse->responses_until = now + delay;
}

/* Does it end what bounds the lateness of WRITEs? */
static bool is_bound(uint32_t flags)
{
    return !(flags & OP_RESPONSE) && (!(flags & OP_WRITE) || flags & OP_IMMDT);
}

static bool may_be_carried(const struct qp *qp, const struct packet *packet, uint32_t flags)
{
    bool tags = qp->uses.srq && qp->uses.srq->tags;
    return packet->payload.length && qp->traits & QP_END_TO_END && !tags &&
           flags & (OP_SEND | OP_WRITE | OP_RESPONSE) && !(flags & OP_ATOMIC_WRITE);
}

const struct packet *qp_adverse_take(struct qp *qp, const struct packet *packet, struct packet *room)
{
    lock_assert_held(&qp->lock);
    struct qp_adverse *adverse = qp_datapath(qp)->adverse;
    uint32_t flags = op_table[packet->opcode].flags;
    if (is_bound(flags))
        land(qp, adverse, NANOS_NEVER);
    delay_response(qp, adverse, flags);
    if (!may_be_carried(qp, packet, flags))
        return packet;
    adverse->carried = packet->payload;
    adverse->stores_late = flags & OP_WRITE && !(flags & OP_IMMDT);
    *room = *packet;
    room->payload =
        (struct payload){.length = packet->payload.length, .count = PAYLOAD_STORES, .pull = carry, .source = adverse};
    return room;
}

void qp_adverse_expire(struct qp *qp, nanos now)
{
    lock_assert_held(&qp->lock);
    struct qp_adverse *adverse = qp_datapath(qp)->adverse;
    bool opened = guard_begin(now);
    if (adverse && qp->rate_limit.lands <= now)
        land(qp, adverse, now);
    guard_end(opened);
}

void qp_adverse_settle_slow(struct qp *qp)
{
    lock_assert_held(&qp->lock);
    bool opened = guard_begin_now();
    qp_datapath(qp)->adverse->responses_until = 0;
    land(qp, qp_datapath(qp)->adverse, NANOS_NEVER);
    guard_end(opened);
}
