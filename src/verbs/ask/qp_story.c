#include "verbs/ask/qp_story.h"

#include "base/read_clock.h"
#include "transport/request.h"
#include "transport/scatter.h"
#include "verbs/memory/past_regions.h"
#include "verbs/qp/qp_memory.h"
#include "verbs/qp/qp_tell.h"
#include "verbs/queue/receive_queue.h"
#include "verbs/queue/srq.h"
#include "wire/op.h"

nanos qp_story_now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

const struct traffic_flow *qp_story_settle(const struct qp *qp)
{
    struct traffic_flow *flow = qp_flow((struct qp *)qp);
    lock_assert_held(&qp->lock);
    if (flow->recent)
        traffic_settle(flow);
    return flow;
}

/* Returns the place of the first error; NULL: there was an error, or there is no memory. */
static struct story_error *begin_error(struct qp *qp, enum story_subject subject, enum reason reason)
{
    struct story *story = traffic_story(qp_flow(qp));
    if (!story || story->error.reason)
        return NULL;
    uint32_t sends = story->error.flushed_sends, receives = story->error.flushed_receives;
    story->error = (struct story_error){.time = qp_story_now(),
                                        .reason = (uint16_t)reason,
                                        .subject = (uint8_t)subject,
                                        .flushed_sends = sends,
                                        .flushed_receives = receives};
    return &story->error;
}

struct story_memory qp_story_look(const struct qp *qp, uint32_t key, uint64_t address, uint32_t length, unsigned access)
{
    const struct region *region = mr_find(qp, key);
    struct story_memory memory = {.key = key, .address = address, .length = length, .access = access, .refused = true};
    struct past_region past;
    memory.key_swapped = !region && mr_find(qp, __builtin_bswap32(key));
    if (!region && past_regions_find(key, &past)) {
        memory.known = true;
        memory.base = past.base;
        memory.size = past.length;
        memory.has = past.access;
        memory.window = past.window;
        memory.gone = past.ended;
    }
    if (region) {
        memory.known = true;
        memory.base = region->base;
        memory.size = region->length;
        memory.has = region->access;
        memory.window = region->kind == REGION_WINDOW;
        memory.pd = region->pd && region->pd != qp->memory.pd ? region->pd->object.handle : 0;
    }
    return memory;
}

/* Returns what is known of the first element that may not be used with this access. */
static struct story_memory find_refused(const struct qp *qp, const struct pd *pd, const struct ibv_sge *sge,
                                        uint32_t count, unsigned access)
{
    uint32_t at = mr_find_refused(qp, pd, sge, count, access);
    if (at == count)
        return (struct story_memory){0};
    return qp_story_look(qp, sge[at].lkey, sge[at].addr, sge[at].length, access);
}

/* Returns true for a request that names memory of the peer; others have something else in the same fields. */
static bool names_memory(unsigned opcode)
{
    unsigned class = request_kinds[opcode].class;
    return class >= REQUEST_WRITE && class <= REQUEST_ATOMIC_WRITE;
}

void qp_story_describe_send(struct qp *qp, struct story_error *error, const struct send_wqe *work)
{
    error->posted = error->time - send_queue_since(work, error->time);
    error->id = work->id;
    error->opcode = (uint8_t)send_wqe_posted_opcode(work);
    error->length = work->length;
    error->psn = work->started && !(qp->traits & QP_UNORDERED) ? work->first_psn : 0;
    if (names_memory(error->opcode)) {
        error->address = work->remote_address;
        error->key = work->rkey;
    }
    if (!(work->flags & IBV_SEND_INLINE))
        error->memory = find_refused(qp, qp->memory.pd, work->sge, work->sge_count, request_local_access(work));
}

void qp_story_send(struct qp *qp, const struct send_wqe *work, enum ibv_wc_status status, enum reason reason)
{
    lock_assert_held(&qp->lock);
    struct story *story = qp_story_settle(qp)->story;
    if (status == IBV_WC_WR_FLUSH_ERR) {
        if (story && engine_has_failed(qp_engine(qp))) /* otherwise its address handle is gone (qp_story_messages.h) */
            story->error.flushed_sends++;
        return;
    }
    struct story_error *error = begin_error(qp, STORY_SEND, reason);
    if (!error)
        return;
    error->status = (uint8_t)status;
    qp_story_describe_send(qp, error, work);
}

/* Adds the receive to the error, which the packet that ended the receive may have begun. */
void qp_story_describe_receive(struct qp *qp, struct story_error *error, const struct recv_wqe *receive,
                               enum ibv_wc_status status)
{
    error->receive_id = receive->id;
    error->receive_status = (uint8_t)status;
    error->limit = (uint32_t)scatter_room(receive);
    if (error->reason == REASON_SCRIPTED) /* the script gave it no memory, so that it fails */
        return;
    struct story_memory memory =
        find_refused(qp, qp->memory.receive_pd, receive->sge, receive->sge_count, IBV_ACCESS_LOCAL_WRITE);
    if (memory.refused)
        error->memory = memory;
}

void qp_story_receive(struct qp *qp, const struct recv_wqe *receive, const struct recv_cqe *arrival)
{
    lock_assert_held(&qp->lock);
    struct story *story = qp_story_settle(qp)->story;
    if (arrival->status == IBV_WC_WR_FLUSH_ERR) {
        if (story)
            story->error.flushed_receives++;
        return;
    }
    struct story_error *error = begin_error(qp, STORY_RECEIVE, arrival->reason);
    if (!error && story && story->error.subject == STORY_PACKET && !story->error.receive_status)
        error = &story->error;
    if (error && arrival->reason == REASON_SCRIPTED) {
        error->subject = STORY_RECEIVE;
        error->reason = REASON_SCRIPTED;
        error->memory = (struct story_memory){0};
    }
    if (error)
        qp_story_describe_receive(qp, error, receive, arrival->status);
}

/* Returns the number of this side that the packet violates; 0: the reason is about no number. */
static uint32_t limit_of(const struct qp *qp, enum reason reason)
{
    switch (reason) {
    case REASON_MESSAGE_LENGTH:
        return 128u << qp->attr.path_mtu;
    case REASON_QP_PERMISSION:
        return (uint32_t)qp->attr.qp_access_flags;
    case REASON_TOO_MANY_READS:
        return qp->attr.max_dest_rd_atomic;
    default:
        return 0;
    }
}

struct receive_queue *qp_story_receives(const struct qp *qp)
{
    struct srq *srq = qp->uses.srq ? qp->uses.srq : qp->xrc.selected;
    return srq ? &srq->queue : qp->receives.queue;
}

/* Keeps the lengths of the message and of the next receive, which stays when it is too short. Another queue pair may
 * have taken that from an SRQ meanwhile. */
static void note_too_short(struct qp *qp, uint32_t bytes)
{
    struct story *story = traffic_story(qp_flow(qp));
    struct receive_queue *queue = qp_story_receives(qp);
    struct story_short next = {.bytes = bytes, .known = true};
    if (story && queue && receive_queue_next(queue, &next.id, &next.room))
        story->too_short = next;
}

void qp_story_describe_packet(const struct qp *qp, struct story_error *error, const struct packet *packet)
{
    uint32_t flags = op_table[packet->opcode].flags;
    error->opcode = packet->opcode;
    error->psn = packet->psn;
    error->length = flags & OP_RETH ? packet->length : packet->payload.length;
    error->address = flags & (OP_RETH | OP_ATOMICETH) ? packet->address : 0;
    error->key = flags & (OP_RETH | OP_ATOMICETH) ? packet->rkey : flags & OP_IETH ? packet->invalidate_key : 0;
    error->memory = qp_flow((struct qp *)qp)->story->memory;
}

void qp_story_packet(struct qp *qp, const struct packet *packet, enum reason reason)
{
    enum { RESPONDER = 200 }; /* reasons of diag.def from here on end a reliable queue pair */
    lock_assert_held(&qp->lock);
    if (reason == REASON_PACKET_TOO_LONG)
        note_too_short(qp, packet->payload.length);
    if ((unsigned)reason < RESPONDER || !qp_is_reliable(qp))
        return;
    struct story_error *error = begin_error(qp, STORY_PACKET, reason);
    if (!error)
        return;
    qp_story_describe_packet(qp, error, packet);
    error->limit = limit_of(qp, reason);
}

void qp_story_memory(struct qp *qp, uint32_t rkey, uint64_t address, uint32_t length, unsigned access)
{
    lock_assert_held(&qp->lock);
    struct story *story = traffic_story(qp_flow(qp));
    if (story)
        story->memory = qp_story_look(qp, rkey, address, length, access);
}

void qp_story_fault(struct qp *qp, enum reason reason)
{
    lock_assert_held(&qp->lock);
    begin_error(qp, STORY_NOTHING, reason);
}

bool qp_story_fails(struct qp *qp, enum reason reason, int process)
{
    lock_assert_held(&qp->lock);
    if (qp->state == IBV_QPS_RESET || qp->state == IBV_QPS_ERR)
        return false;
    qp_tell_cause(qp, reason);
    struct story_error *error = begin_error(qp, STORY_NOTHING, reason);
    if (error)
        error->limit = (uint32_t)process;
    return true;
}

nanos qp_story_last_ended(const struct story *story, uint32_t at)
{
    for (unsigned back = 1; back <= STORY_RECORDS; back++) {
        const struct story_record *record = story_record(story, at, back);
        if (record->event == EVENT_RECEIVE_ENDED || record->event == EVENT_SEND_ENDED)
            return record->time;
    }
    return 0;
}

void qp_story_forget(struct qp *qp)
{
    lock_assert_held(&qp->lock);
    struct story *story = qp_flow(qp)->story;
    if (!story)
        return;
    story->error = (struct story_error){0};
    story->memory = (struct story_memory){0};
    story->too_short = (struct story_short){0};
}
