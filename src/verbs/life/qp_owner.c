#include "verbs/life/qp_owner.h"

#include <string.h>

#include "base/likely.h"
#include "diag/log.h"
#include "transport/request.h"
#include "verbs/ask/qp_story.h"
#include "verbs/ask/qp_story_kept.h"
#include "verbs/ask/qp_story_messages.h"
#include "verbs/disturb/scripted.h"
#include "verbs/life/qp_messages.h"
#include "verbs/life/vendor_code.h"
#include "verbs/life/work_words.h"
#include "verbs/object/domain.h"
#include "verbs/qp/comp_cntr.h"
#include "verbs/qp/mw_bind.h"
#include "verbs/qp/qp_direct.h"
#include "verbs/qp/qp_engine.h"
#include "verbs/qp/qp_error.h"
#include "verbs/qp/qp_memory.h"
#include "verbs/qp/qp_part.h"
#include "verbs/qp/qp_tell.h"
#include "verbs/queue/cq_push.h"
#include "verbs/queue/receive_queue.h"
#include "verbs/queue/srq.h"
#include "wire/grh.h"
#include "wire/lrh.h"

/* Work has the same opcode in its completion when a script ends it. */
#define COMPLETES_AS(posted, completed) [posted] = completed, [WORK_SCRIPTED | posted] = completed
static const uint8_t completion_opcodes[] = {
    COMPLETES_AS(IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE),
    COMPLETES_AS(IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE),
    COMPLETES_AS(IBV_WR_SEND, IBV_WC_SEND),
    COMPLETES_AS(IBV_WR_SEND_WITH_IMM, IBV_WC_SEND),
    COMPLETES_AS(IBV_WR_RDMA_READ, IBV_WC_RDMA_READ),
    COMPLETES_AS(IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP),
    COMPLETES_AS(IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD),
    COMPLETES_AS(IBV_WR_LOCAL_INV, IBV_WC_LOCAL_INV),
    COMPLETES_AS(IBV_WR_BIND_MW, IBV_WC_BIND_MW),
    COMPLETES_AS(IBV_WR_SEND_WITH_INV, IBV_WC_SEND),
    COMPLETES_AS(IBV_WR_TSO, IBV_WC_TSO),
    COMPLETES_AS(NEWER_WR_FLUSH, NEWER_WC_FLUSH),
    COMPLETES_AS(IBV_WR_ATOMIC_WRITE, IBV_WC_ATOMIC_WRITE),
    COMPLETES_AS(WORK_IN_FORM | IBV_WR_RDMA_WRITE, IBV_WC_DRIVER2),
    COMPLETES_AS(WORK_IN_FORM | IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_DRIVER2),
    COMPLETES_AS(WORK_IN_FORM | IBV_WR_SEND, IBV_WC_DRIVER2),
    COMPLETES_AS(WORK_IN_FORM | IBV_WR_SEND_WITH_IMM, IBV_WC_DRIVER2),
    COMPLETES_AS(WORK_IN_FORM | IBV_WR_SEND_WITH_INV, IBV_WC_DRIVER2),
    COMPLETES_AS(WORK_VENDOR_CONFIGURE, IBV_WC_DRIVER1),
    COMPLETES_AS(WORK_VENDOR_COPY, IBV_WC_DRIVER3),
    COMPLETES_AS(WORK_VENDOR_NOTHING, IBV_WC_DRIVER2),
    COMPLETES_AS(WORK_VENDOR_MALFORMED, IBV_WC_DRIVER2),
};
#undef COMPLETES_AS

/* Clears the entry in two parts: for a whole struct compilers put `rep stos`, which takes longer than all the rest. */
static inline void clear_entry(struct completion *entry)
{
    enum { PART = 64 };
    _Static_assert(sizeof *entry > PART && sizeof *entry < 2 * PART, "two parts");
    memset(entry, 0, PART);
    memset((char *)entry + PART, 0, sizeof *entry - PART);
}

/* Reports the failure; returns the completion's vendor_err. */
cold static unsigned tell_failed_send(struct qp *qp, const struct send_wqe *work, enum ibv_wc_status status,
                                      enum reason reason)
{
    struct tell_numbers numbers = {0};
    qp_end_lateness(qp); /* the data of work that ended earlier must be in memory */
    if (status != IBV_WC_WR_FLUSH_ERR && log_wanted(LOG_WARN))
        work_words_send(qp, work, reason, &numbers);
    qp_tell_end(qp, "send", work->id, status, reason, &numbers);
    qp_story_send(qp, work, status, reason);
    qp_withdraw_references(qp); /* before the program learns that its memory is its own again */
    return reason == REASON_SCRIPTED ? scripted_end_of(work).vendor : vendor_code(status, reason);
}

/* Notes the end of a send; a success without a packet has no record. */
static inline void note_sent(struct qp *qp, const struct send_wqe *work, enum ibv_wc_status status)
{
    if (status != IBV_WC_SUCCESS || !qp_does_directly(qp, work->opcode))
        traffic_note_ended(qp_flow(qp), EVENT_SEND_ENDED, work->id, status, work->opcode);
}

__attribute__((always_inline)) static inline void
complete_sent(struct qp *qp, const struct send_wqe *work, enum ibv_wc_status status, enum reason reason, uint8_t opcode)
{
    struct cq *cq = qp->uses.send_cq;
    uint32_t retires = qp->sends.unsignalled;
    unsigned vendor = reason;
    if (unlikely(status != IBV_WC_SUCCESS))
        vendor = tell_failed_send(qp, work, status, reason);
    note_sent(qp, work, status);
    qp->sends.unsignalled = 0;
    struct completion *entry = cq_begin_push(cq);
    if (unlikely(!entry))
        return;
    clear_entry(entry);
    entry->id = work->id;
    entry->retired = &qp->sends.retired;
    entry->retires = retires;
    entry->qp_number = qp->number;
    entry->status = (uint8_t)status;
    entry->opcode = opcode;
    entry->reason = (uint16_t)vendor;
    entry->length = work->length;
    cq_end_push(cq, entry, status != IBV_WC_SUCCESS);
}

/* Unsignalled work that succeeds leaves no entry; the next entry retires it. Work that fails always has one. */
void qp_owner_sent(struct engine_owner *owner, const struct send_wqe *work, enum ibv_wc_status status,
                   enum reason reason)
{
    struct qp *qp = qp_of_owner(owner);
    qp->sends.unsignalled++;
    comp_cntr_ended(qp, completion_opcodes[work->opcode], status, work->length);
    if (status != IBV_WC_SUCCESS || (work->flags & IBV_SEND_SIGNALED) || qp->sends.signal_all)
        complete_sent(qp, work, status, reason, completion_opcodes[work->opcode]);
}

/* The library of EFA shows a READ as a SEND (rdma-core's provider). */
void qp_owner_sent_unordered(struct engine_owner *owner, const struct send_wqe *work, enum ibv_wc_status status,
                             enum reason reason)
{
    uint8_t opcode = completion_opcodes[work->opcode];
    struct qp *qp = qp_of_owner(owner);
    qp->sends.unsignalled++;
    complete_sent(qp, work, status, reason, opcode == IBV_WC_RDMA_READ ? IBV_WC_SEND : opcode);
    if (unlikely(status != IBV_WC_SUCCESS)) {
        qp_messages_failed(qp, work, status, reason);
        qp_story_keep_first(qp);
    }
}

cold static void raise_limit(const struct qp *qp)
{
    srq_raise(qp->uses.srq, IBV_EVENT_SRQ_LIMIT_REACHED);
}

cold static void note_missing(const struct qp *qp)
{
    if (qp->uses.srq)
        srq_note_empty(qp->uses.srq, qp->number);
}

/* Flattened, as it is called for each packet: it makes no calls itself. */
__attribute__((flatten)) const struct recv_wqe *qp_owner_take_receive(struct engine_owner *owner,
                                                                      const struct packet *packet, uint64_t least)
{
    struct qp *qp = qp_of_owner(owner);
    bool limit_reached;
    const struct recv_wqe *receive =
        qp->receives.queue ? receive_queue_take(qp->receives.queue, least, &limit_reached) : NULL;
    if (unlikely(!receive))
        note_missing(qp);
    else if (limit_reached)
        raise_limit(qp);
    return receive;
}

void qp_owner_return_receive(struct engine_owner *owner, const struct recv_wqe *receive)
{
    receive_queue_return(qp_of_owner(owner)->receives.queue, receive);
}

/* An EFA shows the number of the sender's GID in the protection domain of the queue pair, and never the GID. */
cold static void show_address_number(const struct qp *qp, struct completion *entry, const struct packet *packet)
{
    union ibv_gid source;
    entry->flags &= (uint16_t)~IBV_WC_GRH;
    entry->slid = ADDRESS_NUMBER_NONE;
    if (!packet->grh)
        return;
    grh_read_source(packet->grh, source.raw);
    entry->slid = pd_address_number(qp->memory.pd, &source);
    if (entry->slid == ADDRESS_NUMBER_NONE)
        memcpy(entry->sgid, &source, sizeof entry->sgid);
}

/* Fills in the sender of a datagram. Its service level on RoCE is as mlx5 shows it and UCX reads it: version 2, over
 * IPv6 or IPv4 (which leaves the first of the 40 bytes 0). */
static void show_sender(const struct qp *qp, struct completion *entry, const struct packet *packet)
{
    enum { ROCE_V2 = 0x8, OVER_IPV6 = 0x1, OVER_IPV4 = 0x2 };
    if (qp->memory.pd && qp->memory.pd->addresses) {
        show_address_number(qp, entry, packet);
    } else if (packet->lrh) {
        struct lrh lrh = lrh_read(packet->lrh);
        entry->slid = lrh.source;
        entry->sl = lrh.sl;
    } else if (packet->grh) {
        entry->sl = ROCE_V2 | (packet->grh[0] ? OVER_IPV6 : OVER_IPV4);
    }
}

static inline void fill_received(const struct qp *qp, struct completion *entry, uint64_t id,
                                 const struct recv_cqe *arrival)
{
    clear_entry(entry);
    entry->id = id;
    entry->retired = &qp->receives.queue->polled;
    entry->retires = qp->receives.queue->retires;
    entry->qp_number = qp->number;
    entry->status = (uint8_t)arrival->status;
    entry->opcode = (uint8_t)arrival->opcode;
    entry->reason = (uint16_t)arrival->reason;
    entry->length = arrival->length;
    entry->immediate_or_key = arrival->immediate_or_key;
    entry->source = arrival->source;
    entry->flags = (uint16_t)arrival->flags;
    entry->flow_tag = arrival->flow_tag;
    entry->cvlan = arrival->cvlan;
    entry->slid = qp->path.lid;
    entry->sl = qp->path.sl;
    if (unlikely(arrival->source && arrival->packet))
        show_sender(qp, entry, arrival->packet);
}

/* A receive whose memory a script has taken away (scripted.h) ends as the script says. */
static bool is_scripted(const struct recv_wqe *receive, const struct recv_cqe *arrival)
{
    return arrival->status == IBV_WC_LOC_PROT_ERR && receive->sge_count == 1 && receive->sge->lkey == SCRIPTED_KEY;
}

cold static struct recv_cqe tell_failed_receive(struct qp *qp, const struct recv_wqe *receive,
                                                const struct recv_cqe *arrival)
{
    struct recv_cqe shown = *arrival;
    struct tell_numbers numbers = {0};
    bool scripted = is_scripted(receive, arrival);
    struct script_end end = scripted ? scripted_end((uint32_t)receive->sge->addr) : (struct script_end){0};
    if (scripted) {
        shown.status = end.status;
        shown.reason = REASON_SCRIPTED;
    } else if (arrival->status != IBV_WC_WR_FLUSH_ERR && log_wanted(LOG_WARN)) {
        work_words_receive(qp, receive, arrival, &numbers);
    }
    qp_tell_end(qp, "receive", receive->id, shown.status, shown.reason, &numbers);
    qp_story_receive(qp, receive, &shown);
    shown.reason = (enum reason)(scripted ? end.vendor : vendor_code(shown.status, shown.reason));
    return shown;
}

void qp_owner_note_received(struct qp *qp, const struct recv_wqe *receive, const struct recv_cqe *arrival)
{
    lock_assert_held(&qp->lock);
    if (unlikely(arrival->status != IBV_WC_SUCCESS))
        qp_story_receive(qp, receive, arrival);
    traffic_note_ended(qp_flow(qp), EVENT_RECEIVE_ENDED, receive->id, arrival->status, arrival->length);
}

void qp_owner_received(struct engine_owner *owner, const struct recv_wqe *receive, const struct recv_cqe *arrival)
{
    struct qp *qp = qp_of_owner(owner);
    struct cq *cq = qp->uses.receive_cq;
    uint64_t id = receive->id;
    struct recv_cqe failed;
    comp_cntr_ended(qp, arrival->opcode, arrival->status, arrival->length);
    if (unlikely(arrival->status != IBV_WC_SUCCESS)) {
        failed = tell_failed_receive(qp, receive, arrival);
        arrival = &failed;
    }
    traffic_note_ended(qp_flow(qp), EVENT_RECEIVE_ENDED, id, arrival->status, arrival->length);
    receive_queue_free(qp->receives.queue, receive);
    cq_note_round(cq);
    struct completion *entry = cq_begin_push(cq);
    if (unlikely(!entry))
        return receive_queue_lost(qp->receives.queue);
    fill_received(qp, entry, id, arrival);
    cq_end_push(cq, entry, arrival->solicited || arrival->status != IBV_WC_SUCCESS);
}

/* The entry of a WRITE with immediate that took no receive has no wr_id. */
cold static void complete_unsolicited(struct qp *qp, const struct recv_cqe *arrival)
{
    struct cq *cq = qp->uses.receive_cq;
    traffic_note_ended(qp_flow(qp), EVENT_RECEIVE_ENDED, 0, arrival->status, arrival->length);
    cq_note_round(cq);
    struct completion *entry = cq_begin_push(cq);
    if (unlikely(!entry))
        return;
    fill_received(qp, entry, 0, arrival);
    entry->retired = NULL;
    entry->retires = 0;
    entry->unsolicited = true;
    cq_end_push(cq, entry, arrival->solicited);
}

void qp_owner_received_unordered(struct engine_owner *owner, const struct recv_wqe *receive,
                                 const struct recv_cqe *arrival)
{
    if (receive && arrival->status != IBV_WC_SUCCESS)
        qp_story_message_receive(qp_of_owner(owner), receive, arrival);
    if (receive)
        qp_owner_received(owner, receive, arrival);
    else
        complete_unsolicited(qp_of_owner(owner), arrival);
}

__attribute__((flatten)) enum reason qp_owner_local_memory(struct engine_owner *owner, const struct ibv_sge *sge,
                                                           unsigned access, struct iovec *out)
{
    return mr_local(qp_of_owner(owner), qp_of_owner(owner)->memory.pd, sge, access, out);
}

__attribute__((flatten)) enum reason qp_owner_receive_memory(struct engine_owner *owner, const struct ibv_sge *sge,
                                                             unsigned access, struct iovec *out)
{
    return mr_local(qp_of_owner(owner), qp_of_owner(owner)->memory.receive_pd, sge, access, out);
}

cold static void tell_memory(struct qp *qp, uint32_t rkey, uint64_t address, uint32_t length, unsigned access,
                             enum reason reason)
{
    qp_tell_memory(qp, rkey, address, length, access, reason);
    qp_story_memory(qp, rkey, address, length, access);
}

__attribute__((flatten)) enum reason qp_owner_remote_memory(struct engine_owner *owner, uint32_t rkey, uint64_t address,
                                                            uint32_t length, unsigned access, struct iovec *out)
{
    enum reason reason = mr_remote(qp_of_owner(owner), rkey, address, length, access, out);
    if (unlikely(reason))
        tell_memory(qp_of_owner(owner), rkey, address, length, access, reason);
    return reason;
}

/* Called only with settings.owner_changes: the disturbance has `changes`. */
bool qp_owner_change(struct engine_owner *owner, const struct packet *packet, void *memory, uint64_t *found)
{
    struct qp *qp = qp_of_owner(owner);
    return qp_datapath(qp)->disturbance->changes(qp, packet, memory, found);
}

enum reason qp_owner_invalidate(struct engine_owner *owner, uint32_t rkey)
{
    return mw_invalidate(qp_of_owner(owner), rkey, true);
}

enum ibv_wc_status qp_owner_local_operation(struct engine_owner *owner, const struct send_wqe *work,
                                            enum reason *reason)
{
    struct qp *qp = qp_of_owner(owner);
    qp_end_lateness(qp); /* data that has arrived for a window must land before the window ends */
    if (send_wqe_is_scripted(work)) {
        *reason = scripted_end_of(work).status == IBV_WC_SUCCESS ? REASON_NONE : REASON_SCRIPTED;
        return scripted_end_of(work).status;
    }
    if (qp_part_runs(work))
        return qp_part_of(qp)->run(qp, work, reason);
    *reason = work->opcode == IBV_WR_BIND_MW ? mw_bind(qp, work) : mw_invalidate(qp, work->immediate, false);
    if (*reason == REASON_INVALIDATE_KEY)
        *reason = REASON_INVALIDATE_LOCAL;
    return *reason ? IBV_WC_MW_BIND_ERR : IBV_WC_SUCCESS;
}

void qp_owner_failed(struct engine_owner *owner, bool sqe)
{
    struct qp *qp = qp_of_owner(owner);
    if (sqe) {
        qp_enter(qp, IBV_QPS_SQE);
        return qp_story_keep(qp);
    }
    qp_end_lateness(qp);
    qp_unpublish_failed(qp);
    qp_enter(qp, IBV_QPS_ERR);
    qp_flush_receives(qp);
    qp_story_keep(qp);
}

void qp_owner_event(struct engine_owner *owner, enum ibv_event_type type)
{
    struct qp *qp = qp_of_owner(owner);
    if (type == IBV_EVENT_SQ_DRAINED && !qp->attr.en_sqd_async_notify)
        return;
    if (type == IBV_EVENT_COMM_EST)
        qp_publish(qp);
    qp_raise(qp, type);
}

void qp_owner_dropped(struct engine_owner *owner, const struct packet *packet, enum reason reason)
{
    qp_tell_dropped(qp_of_owner(owner), packet, reason);
    qp_story_packet(qp_of_owner(owner), packet, reason);
}

void qp_owner_note(struct engine_owner *owner, enum event event, uint64_t a, uint64_t b)
{
    traffic_note(qp_flow(qp_of_owner(owner)), event, a, b);
}

void qp_owner_watch(struct engine_owner *owner, nanos deadline)
{
    qp_expire_by(qp_of_owner(owner), deadline);
}

const struct owner_operations qp_owner_operations = {
    QP_OWNER_COMMON,
    .sent = qp_owner_sent,
    .take_receive = qp_owner_take_receive,
    .received = qp_owner_received,
    .failed = qp_owner_failed,
    .dropped = qp_owner_dropped,
};
