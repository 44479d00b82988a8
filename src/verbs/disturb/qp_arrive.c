#include "verbs/disturb/qp_adverse.h"

#include <string.h>

#include "verbs/queue/srq.h"

/* The longest delay of each, unless times are scaled. */
static const nanos write_late = 2 * NANOS_MILLISECOND, response_late = 300 * NANOS_MICROSECOND,
                   acknowledge_late = 200 * NANOS_MICROSECOND, response_kept = 200 * NANOS_MICROSECOND;

void qp_adverse_watch(struct qp_adverse *adverse)
{
    nanos due = landings_due(&adverse->landings), kept = landings_due(&adverse->kept);
    due = kept < due ? kept : due;
    for (unsigned i = 0; i < QP_EVENTS; i++)
        due = adverse->events[i] < due ? adverse->events[i] : due;
    adverse->hooks.due = due;
    if (due != NANOS_NEVER)
        qp_expire_by(adverse->qp, due);
}

void qp_adverse_land(struct qp *qp, nanos until)
{
    lock_assert_held(&qp->lock);
    struct qp_adverse *adverse = qp_adverse_of(qp);
    landings_land(&adverse->landings, &adverse->source, until);
    qp_adverse_watch(adverse);
}

void qp_adverse_land_responses(struct qp_adverse *adverse)
{
    lock_assert_held(&adverse->qp->lock);
    landings_land(&adverse->kept, &adverse->source, NANOS_NEVER);
}

/* --- WRITEs */

static bool keep_late(struct qp_adverse *adverse, uint32_t offset, const struct iovec *to)
{
    nanos late = adverse_delay(&adverse->source, ADVERSE_LATE_WRITE, write_late);
    if (!late && landings_due(&adverse->landings) == NANOS_NEVER)
        return false;
    if (!landings_keep(&adverse->landings, &adverse->carried, offset, to, qp_flow(adverse->qp)->now + late))
        return false;
    qp_adverse_watch(adverse);
    return true;
}

/* Keeps a WRITE's data for later; data that can't be kept lands now, after the data that was kept before. */
static bool carry_write(struct qp_adverse *adverse, uint32_t offset, const struct iovec *to, uint32_t count)
{
    if (count == 1 && keep_late(adverse, offset, to))
        return true;
    qp_adverse_land(adverse->qp, NANOS_NEVER);
    return count == 1 ? landing_tear(&adverse->carried, offset, to, &adverse->source)
                      : payload_copy(&adverse->carried, offset, to, count);
}

/* --- responses to READs */

static bool store_now(struct qp_adverse *adverse, uint32_t offset, const struct iovec *to, uint32_t count)
{
    if (!adverse_shows(ADVERSE_PIECES))
        return payload_copy(&adverse->carried, offset, to, count);
    adverse_note(ADVERSE_PIECES);
    return landing_scatter(&adverse->carried, offset, to, count, &adverse->source);
}

/* Returns true for an unsignalled READ before another READ that has been sent: the bytes of the first need not be
 * stored before the completion of the second, and may be stored after the bytes of the second. */
static bool may_wait_for_next(const struct qp_adverse *adverse)
{
    struct qp *qp = adverse->qp;
    const struct send_queue *queue = engine_queue(qp_engine(qp));
    const struct send_wqe *work = send_queue_at(queue, queue->head), *next = send_queue_at(queue, queue->head + 1);
    return adverse_shows(ADVERSE_PIECES) && !qp->sends.signal_all && !(work->flags & IBV_SEND_SIGNALED) &&
           !qp->counting.operations && (int32_t)(queue->next - queue->head) >= 2 && next->opcode == IBV_WR_RDMA_READ &&
           work->packets == 1;
}

static bool keep_response(struct qp_adverse *adverse, uint32_t offset, const struct iovec *to, uint32_t count)
{
    if (count != 1 || !may_wait_for_next(adverse) || adverse_draw(&adverse->source, 1))
        return false;
    return landings_keep(&adverse->kept, &adverse->carried, offset, to, qp_flow(adverse->qp)->now + response_kept);
}

/* Asks for a READ again at most once, as each repetition sends the rest of a long READ again; and never with the last
 * retries, which are for losses of the network. */
static bool wants_it_again(struct qp_adverse *adverse)
{
    enum { ONE_IN = 4, LEAST = 2 };
    struct qp *qp = adverse->qp;
    uint32_t behind = engine_queue(qp_engine(qp))->head + 1;
    bool may = adverse_shows(ADVERSE_REPEATED_READS) && adverse->again != behind &&
               engine_settings_of(qp_engine(qp))->retry_count >= LEAST && engine_has_all_retries(qp_engine(qp));
    if (!may || adverse_draw(&adverse->source, ONE_IN - 1))
        return false;
    adverse->again = behind;
    adverse_note(ADVERSE_REPEATED_READS);
    return true;
}

/* A requester that can't store an answer asks for it again. */
static bool carry_response(struct qp_adverse *adverse, uint32_t offset, const struct iovec *to, uint32_t count)
{
    bool again = wants_it_again(adverse);
    if (!again && keep_response(adverse, offset, to, count)) {
        qp_adverse_watch(adverse);
        return true;
    }
    bool stored = store_now(adverse, offset, to, count);
    qp_adverse_land_responses(adverse);
    return stored && !again;
}

/* --- packets */

/* The `pull` of the payload that the engine stores: adverse->carry stores it now or later. */
static bool carry(const struct payload *payload, uint32_t offset, const struct iovec *to, uint32_t count)
{
    struct qp_adverse *adverse = payload->source;
    return adverse->carry(adverse, offset, to, count);
}

static nanos up_to_a_timer(const struct qp *qp, nanos most)
{
    enum { UNIT = 4096, PARTS = 16 };
    nanos part = ((nanos)UNIT << (qp->attr.timeout & 31)) / PARTS;
    return qp->attr.timeout && part < most ? part : most;
}

/* Delays a response: later WRITEs overtake a READ whose response waits. */
static void delay_response(struct qp *qp, struct qp_adverse *adverse, uint32_t flags)
{
    bool has_response = flags & (OP_READ | OP_ATOMIC);
    nanos now = qp_flow(qp)->now;
    if (!(qp->traits & QP_END_TO_END) || adverse->responses_until > now || flags & OP_RESPONSE ||
        !(flags & OP_END || has_response))
        return;
    nanos delay = has_response
                      ? adverse_delay(&adverse->source, ADVERSE_OVERTAKE, up_to_a_timer(qp, response_late))
                      : adverse_delay(&adverse->source, ADVERSE_LATE_ACKS, up_to_a_timer(qp, acknowledge_late));
    adverse->responses_until = now + delay;
}

/* Returns true for a packet before which the data of earlier WRITEs must be in memory. */
static bool is_bound(uint32_t flags)
{
    return !(flags & OP_RESPONSE) && (!(flags & OP_WRITE) || flags & OP_IMMDT);
}

static bool may_be_carried(const struct qp *qp, const struct packet *packet, uint32_t flags)
{
    bool tags = qp->uses.srq && qp->uses.srq->tags;
    return packet->payload.length && qp->traits & (QP_END_TO_END | QP_UNORDERED) && !tags &&
           flags & (OP_SEND | OP_WRITE | OP_RESPONSE) && !(flags & OP_ATOMIC_WRITE);
}

/* IPv4 leaves the part of the 40 bytes before its header undefined; the first byte distinguishes the versions. */
static void show_any_header(struct qp_adverse *adverse, const struct packet *packet, struct packet *shown)
{
    enum { HEADER = 40, IPV4 = 20 };
    if (!packet->grh || packet->lrh || packet->grh[0] || !adverse_shows(ADVERSE_UNSAID))
        return;
    memcpy(adverse->grh, packet->grh, HEADER);
    for (unsigned i = 1; i < IPV4; i++)
        adverse->grh[i] = (uint8_t)adverse_draw(&adverse->source, UINT8_MAX);
    *shown = *packet;
    shown->grh = adverse->grh;
}

const struct packet *qp_adverse_arrives(struct qp *qp, const struct packet *packet, struct packet *room)
{
    lock_assert_held(&qp->lock);
    struct qp_adverse *adverse = qp_adverse_of(qp);
    uint32_t flags = op_table[packet->opcode].flags;
    room->grh = NULL;
    if (qp->traits & QP_DATAGRAM)
        show_any_header(adverse, packet, room);
    if (is_bound(flags))
        qp_adverse_land(qp, NANOS_NEVER);
    if (flags & OP_RESPONSE && !packet->payload.length)
        qp_adverse_land_responses(adverse); /* data must be in memory before the packet completes later work */
    delay_response(qp, adverse, flags);
    if (!may_be_carried(qp, packet, flags))
        return room->grh ? room : packet;
    const uint8_t *grh = room->grh ? room->grh : packet->grh;
    adverse->carried = packet->payload;
    adverse->carry = qp->traits & QP_UNORDERED                 ? store_now
                     : flags & OP_RESPONSE                     ? carry_response
                     : flags & OP_WRITE && !(flags & OP_IMMDT) ? carry_write
                                                               : store_now;
    *room = *packet;
    room->grh = grh;
    room->payload =
        (struct payload){.length = packet->payload.length, .count = PAYLOAD_STORES, .pull = carry, .source = adverse};
    return room;
}
