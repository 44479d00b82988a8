#include "verbs/kinds/srq_tags.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/likely.h"
#include "base/mapping.h"
#include "base/result.h"
#include "diag/log.h"
#include "events/refusal.h"
#include "facts/fill.h"
#include "verbs/kinds/kinds.h"
#include "verbs/life/qp_owner.h"
#include "verbs/qp/qp_direct.h"
#include "verbs/qp/qp_doors.h"
#include "verbs/queue/cq_poll.h"
#include "verbs/queue/cq_push.h"
#include "verbs/queue/receive_queue.h"

struct srq_tags {
    struct lock lock; /* inside qp->lock, outside receive_queue.lock */
    struct tags tags;
    size_t size;         /* bytes of the list's memory */
    uint32_t operations; /* the most completions of operations that may be unpolled */
    uint32_t completed;  /* completions of operations that were put in */
    _Atomic uint32_t polled;
};

/* Untouched pages of the mapping cost nothing, so a list may be made far larger than it is used. */
static int srq_tags_make(struct srq *srq, struct ibv_srq_init_attr_ex *init)
{
    const struct ibv_tm_cap *cap = &init->tm_cap;
    if (!cap->max_num_tags || cap->max_num_tags > SRQ_TAGS_MAX)
        return refuse(EINVAL, REASON_TM_TAGS, "max_num_tags is %u, and must be 1 to %u", cap->max_num_tags,
                      SRQ_TAGS_MAX);
    if (cap->max_ops > SRQ_TAGS_OPERATIONS_MAX)
        return refuse(EINVAL, REASON_TM_OPERATIONS, "max_ops is %u, above %u", cap->max_ops, SRQ_TAGS_OPERATIONS_MAX);
    struct srq_tags *tags = calloc(1, sizeof *tags);
    if (!tags)
        return ENOMEM;
    lock_set_rank(&tags->lock, LOCK_TAGS);
    tags->size = tags_size(cap->max_num_tags, SRQ_TAGS_SGES);
    void *memory = mapping_make(tags->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        free(tags);
        return ENOMEM;
    }
    tags_initialize(&tags->tags, memory, cap->max_num_tags, SRQ_TAGS_SGES);
    tags->operations = cap->max_ops;
    srq->tags = tags;
    return 0;
}

static void srq_tags_destroy(struct srq *srq)
{
    struct srq_tags *tags = srq->tags;
    if (!tags)
        return; /* the SRQ was refused before it had a list */
    if (!srq->cq->process->inherited)
        cq_forget(srq->cq, &tags->polled);
    munmap(tags->tags.list.entries, tags->size);
    free(tags);
}

static void srq_tags_inherit(struct srq *srq)
{
    lock_inherit(&srq->tags->lock);
}

static enum reason srq_tags_refuse(const struct qp_kind *kind)
{
    return kind->traits & QP_END_TO_END ? REASON_NONE : REASON_TM_SERVICE;
}

/* The work whose end a completion reports. */
enum ended { ENDED_OPERATION, ENDED_TAGGED, ENDED_RECEIVE };

static void retire_by(struct srq *srq, enum ended ended, struct completion *entry)
{
    if (ended == ENDED_OPERATION) {
        entry->retired = &srq->tags->polled;
        entry->retires = 1;
        srq->tags->completed++;
    } else if (ended == ENDED_RECEIVE) {
        entry->retired = &srq->queue.polled;
    }
}

/* Takes an end out of the counts, as no program will poll its completion. */
static void lost(struct srq *srq, enum ended ended)
{
    if (ended == ENDED_OPERATION)
        srq->tags->completed--;
    else if (ended == ENDED_RECEIVE)
        receive_queue_lost(&srq->queue);
}

/* Completes an end. Under the list's lock, so that the completion queue has the order of the list's changes. */
static void complete(struct srq *srq, const struct tags_event *event, uint32_t qp_number, enum ended ended)
{
    struct completion entry = {
        .id = event->id,
        .qp_number = qp_number,
        .status = (uint8_t)event->status,
        .opcode = (uint8_t)event->opcode,
        .reason = (uint16_t)event->reason,
        .length = event->length,
        .immediate_or_key = event->immediate_or_key,
        .flags = (uint16_t)event->flags,
        .tag = event->tag,
        .tag_private = event->application,
        .lasting = true,
    };
    if (ended == ENDED_OPERATION)
        entry.flow_tag = srq->tags->tags.delivered; /* for entries in memory */
    retire_by(srq, ended, &entry);
    if (qp_number && event->reason)
        log_reason(event->status == IBV_WC_WR_FLUSH_ERR ? LOG_DEBUG : LOG_WARN, event->reason,
                   "qp 0x%x receive wr_id %llu status %d", qp_number, (unsigned long long)event->id, event->status);
    cq_note_round(srq->cq);
    if (!cq_push(srq->cq, &entry, event->notable))
        lost(srq, ended);
}

/* -- operations */

/* `fails_silently`: no completion says that a buffer could not be removed, unless the operation asks for one. */
static enum reason operate(struct srq *srq, struct ibv_ops_wr *wr, bool fails_silently)
{
    struct srq_tags *tags = srq->tags;
    struct tags_event event;
    bool completes;
    uint32_t waiting = tags->completed - atomic_load_explicit(&tags->polled, memory_order_acquire);
    enum reason reason = tags_check(&tags->tags, wr);
    if (reason)
        return reason;
    bool may_complete = wr->flags & IBV_OPS_SIGNALED || wr->opcode == IBV_WR_TAG_DEL; /* which reports its failure */
    if (may_complete && waiting >= tags->operations)
        return REASON_TM_OPERATIONS_FULL;
    reason = tags_operate(&tags->tags, wr, &event, &completes);
    if (!reason && completes && !(fails_silently && !(wr->flags & IBV_OPS_SIGNALED)))
        complete(srq, &event, 0, ENDED_OPERATION);
    return reason;
}

uint32_t srq_tags_count(const struct srq *srq)
{
    return srq->tags->tags.list.capacity;
}

enum reason srq_tags_execute(struct srq *srq, struct ibv_ops_wr *wr)
{
    lock_take(&srq->tags->lock);
    enum reason reason = operate(srq, wr, true);
    lock_release(&srq->tags->lock);
    return reason;
}

cold static int refuse_operation(const struct srq *srq, const struct ibv_ops_wr *wr, enum reason reason)
{
    char call[96];
    int error = reason == REASON_TM_LIST_FULL || reason == REASON_TM_OPERATIONS_FULL ? ENOMEM : EINVAL;
    snprintf(call, sizeof call, "srq 0x%x: ibv_post_srq_ops of wr_id %llu", srq->object.handle,
             (unsigned long long)(wr ? wr->wr_id : 0));
    if (!srq->tags)
        return refuse_in(call, error, reason, "made by ibv_create_srq or of another srq_type");
    if (reason == REASON_TM_OPCODE)
        return refuse_in(call, error, reason, "opcode is %u", wr->opcode);
    if (reason == REASON_TM_FLAGS)
        return refuse_in(call, error, reason, "flags are 0x%x", wr->flags);
    if (reason == REASON_TM_SGES)
        return refuse_in(call, error, reason, "num_sge is %d, max_sge %u", wr->tm.add.num_sge, SRQ_TAGS_SGES);
    if (reason == REASON_TM_HANDLE)
        return refuse_in(call, error, reason, "handle %u", wr->tm.handle);
    return refuse_in(call, error, reason, "max_num_tags is %u, max_ops %u", srq->tags->tags.list.capacity,
                     srq->tags->operations);
}

int srq_tags_operate(struct ibv_srq *ibv, struct ibv_ops_wr *wr, struct ibv_ops_wr **bad)
{
    struct srq *srq = (struct srq *)ibv;
    enum reason reason = srq->tags ? REASON_NONE : REASON_TM_SRQ;
    if (!reason) {
        lock_take(&srq->tags->lock);
        for (; wr && !reason; wr = reason ? wr : wr->next)
            reason = operate(srq, wr, false);
        lock_release(&srq->tags->lock);
    }
    if (!reason)
        return 0;
    *bad = wr;
    return result_failure(refuse_operation(srq, wr, reason));
}

/* -- the host of a queue pair's engine */

static const struct recv_wqe *take_ordinary(struct qp *qp, enum tags_kind kind, bool *limit_reached)
{
    const struct recv_wqe *receive = receive_queue_take(&qp->uses.srq->queue, 0, limit_reached);
    if (receive)
        tags_accept(&qp->uses.srq->tags->tags, &qp_tags(qp)->port, kind);
    return receive;
}

static const struct recv_wqe *srq_tags_take_receive(struct engine_owner *owner, const struct packet *packet,
                                                    uint64_t least)
{
    struct qp *qp = qp_of_owner(owner);
    struct srq_tags *tags = qp->uses.srq->tags;
    const struct recv_wqe *receive = NULL;
    bool limit_reached = false;
    lock_take(&tags->lock);
    enum tags_kind kind = tags_arrive(&tags->tags, &qp_tags(qp)->port, packet);
    struct tags_event event;
    if (kind >= TAGS_EAGER)
        receive = tags_receive(&tags->tags, &qp_tags(qp)->port);
    else if (kind != TAGS_NOTHING)
        receive = take_ordinary(qp, kind, &limit_reached);
    else
        receive = &receive_unfetched;
    if (tags_match(&tags->tags, &qp_tags(qp)->port, packet, &event))
        complete(qp->uses.srq, &event, qp->number, ENDED_TAGGED);
    lock_release(&tags->lock);
    if (limit_reached)
        srq_raise(qp->uses.srq, IBV_EVENT_SRQ_LIMIT_REACHED);
    return receive;
}

static void srq_tags_received(struct engine_owner *owner, const struct recv_wqe *receive,
                              const struct recv_cqe *arrival)
{
    struct qp *qp = qp_of_owner(owner);
    struct srq_tags *tags = qp->uses.srq->tags;
    struct tags_event event;
    lock_take(&tags->lock);
    bool tagged = tags_receive(&tags->tags, &qp_tags(qp)->port);
    tags_received(&tags->tags, &qp_tags(qp)->port, receive->id, arrival, &event);
    if (!tagged)
        receive_queue_free(&qp->uses.srq->queue, receive);
    complete(qp->uses.srq, &event, qp->number, tagged ? ENDED_TAGGED : ENDED_RECEIVE);
    lock_release(&tags->lock);
}

/* Reports the match of a message whose bytes are still to arrive, before the match of any later message. */
static void srq_tags_dropped(struct engine_owner *owner, const struct packet *packet, enum reason reason)
{
    struct qp *qp = qp_of_owner(owner);
    struct srq_tags *tags = qp->uses.srq->tags;
    struct tags_event event;
    qp_owner_dropped(owner, packet, reason);
    if (reason != REASON_PACKET_PULL)
        return;
    lock_take(&tags->lock);
    if (tags_match_early(&tags->tags, &qp_tags(qp)->port, &event))
        complete(qp->uses.srq, &event, qp->number, ENDED_TAGGED);
    lock_release(&tags->lock);
}

/* Ends work of a rendezvous; other work is the program's. */
static void srq_tags_sent(struct engine_owner *owner, const struct send_wqe *work, enum ibv_wc_status status,
                          enum reason reason)
{
    struct qp *qp = qp_of_owner(owner);
    struct srq_tags *tags = qp->uses.srq->tags;
    struct tags_event event;
    if (!tags_owns(work))
        return qp_owner_sent(owner, work, status, reason);
    qp_tags(qp)->working--;
    lock_take(&tags->lock);
    if (tags_sent(&tags->tags, &qp_tags(qp)->port, work, status, reason, &event))
        complete(qp->uses.srq, &event, qp->number, ENDED_TAGGED);
    lock_release(&tags->lock);
}

/* -- what a queue pair does for its rendezvous */

/* Fills the next place in the send queue with work of a rendezvous; NULL: no place is free, or no work waits. */
static struct send_wqe *next_work(struct qp *qp)
{
    struct srq_tags *tags = qp->uses.srq->tags;
    lock_assert_held(&tags->lock);
    struct send_wqe *work =
        qp_tags(qp)->working < SRQ_TAGS_WORK ? send_queue_reserve(engine_queue(qp_engine(qp))) : NULL;
    return work && tags_work(&tags->tags, &qp_tags(qp)->port, work) ? work : NULL;
}

/* Does a READ that this process can do by itself, which takes no place in the send queue and waits for no work. The
 * list's lock is given back meanwhile, as other queue pairs match messages; the entry is this queue pair's alone. */
static bool read_at_once(struct qp *qp, const struct send_wqe *work)
{
    struct srq_tags *tags = qp->uses.srq->tags;
    struct tags_event none;
    lock_assert_held(&tags->lock);
    if (work->opcode != IBV_WR_RDMA_READ)
        return false;
    lock_release(&tags->lock);
    bool read = qp_read_directly(qp, work);
    lock_take(&tags->lock);
    if (read)
        tags_sent(&tags->tags, &qp_tags(qp)->port, work, IBV_WC_SUCCESS, REASON_NONE, &none);
    return read;
}

/* Posts work of rendezvous while places in the send queue are free. A READ that was done at once is followed by its
 * FIN, before the next READ, so that the sender can continue. */
static bool srq_tags_post(struct qp *qp)
{
    lock_assert_held(&qp->lock);
    struct srq_tags *tags = qp->uses.srq->tags;
    struct send_wqe *work;
    bool read = false;
    if (engine_has_failed(qp_engine(qp)))
        return false;
    lock_take(&tags->lock);
    while (!(read && qp_tags(qp)->port.to_finish.first == 0) && (work = next_work(qp))) {
        if (read_at_once(qp, work)) {
            read = true;
            continue;
        }
        work->posted = send_queue_when(qp_flow(qp)->now);
        send_queue_commit(engine_queue(qp_engine(qp)));
        qp_tags(qp)->working++;
    }
    lock_release(&tags->lock);
    qp_door_posted(qp);
    return read && tags_have_work(&qp_tags(qp)->port);
}

/* Ends the rendezvous without a place in the send queue, too, when the queue pair is in error. */
static void srq_tags_flush(struct qp *qp)
{
    lock_assert_held(&qp->lock);
    struct srq_tags *tags = qp->uses.srq->tags;
    struct tags_event event;
    lock_take(&tags->lock);
    while (tags_flush(&tags->tags, &qp_tags(qp)->port, &event))
        complete(qp->uses.srq, &event, qp->number, ENDED_TAGGED);
    lock_release(&tags->lock);
}

/* Flushes before the queue pair is reset or destroyed, which completes nothing: a tagged buffer that it holds must be
 * returned to the program. */
static void srq_tags_abandon(struct qp *qp)
{
    lock_assert_held(&qp->lock);
    qp_door_flush(qp);
    srq_tags_flush(qp);
}

static const struct owner_operations operations = {
    QP_OWNER_COMMON,
    .sent = srq_tags_sent,
    .take_receive = srq_tags_take_receive,
    .received = srq_tags_received,
    .failed = qp_owner_failed,
    .dropped = srq_tags_dropped,
};

const struct srq_kind srq_tags_kind = {
    .type = IBV_SRQT_TM,
    .needs = IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
    .incomplete = REASON_TM_ATTRIBUTES,
    .work_places = SRQ_TAGS_WORK,
    .work_room = SRQ_TAGS_ROOM,
    .owner = &operations,
    .refuse = srq_tags_refuse,
    .make = srq_tags_make,
    .release = srq_tags_destroy,
    .inherit = srq_tags_inherit,
    .post = srq_tags_post,
    .flush = srq_tags_flush,
    .abandon = srq_tags_abandon,
};

/* -- report */

static void write_masks(FILE *out, const void *of)
{
    const struct tag_list *list = of;
    const char *separator = "[";
    for (uint32_t mask = list->first_mask; mask; mask = list->masks[mask].next, separator = ",") {
        struct facts_mask facts = {.mask = {list->masks[mask].mask, true}, .tags = {list->masks[mask].entries, true}};
        fputs(separator, out);
        facts_write(out, &facts_of_mask, &facts);
    }
    fputs(list->first_mask ? "]" : "[]", out);
}

static void fill_tags(struct facts_srq *facts, const struct tags *tags)
{
    const struct tag_list *list = &tags->list;
    fact_put(&facts->tags, true, list->count);
    fact_put(&facts->tags_disabled, true, tags->disabled);
    fact_put(&facts->tags_busy, true, list->allocated - list->count);
    fact_put(&facts->tags_size, true, list->capacity);
    fact_put(&facts->matched, true, tags->matched);
    fact_put(&facts->unexpected, true, tags->delivered);
    fact_put(&facts->unexpected_reported, true, tags->handled);
    fact_put_inner(&facts->masks, write_masks, list);
}

void srq_tags_report(FILE *out, const struct srq *srq, struct facts_srq *facts)
{
    bool tells = srq->tags && lock_try(&srq->tags->lock);
    if (tells)
        fill_tags(facts, &srq->tags->tags);
    facts_write(out, &facts_of_srq, facts);
    if (tells)
        lock_release(&srq->tags->lock);
}

enum { REPORTED = 64 };

/* Collects the oldest entries, in order of posting. Returns their number. */
static uint32_t collect(const struct tag_list *list, uint32_t *oldest)
{
    uint32_t count = 0;
    for (uint32_t entry = 1; entry <= list->fresh; entry++) {
        if (!tag_list_holds(list, entry))
            continue;
        uint32_t at = count < REPORTED ? count++ : REPORTED;
        for (; at && list->entries[oldest[at - 1]].sequence > list->entries[entry].sequence; at--)
            if (at < REPORTED)
                oldest[at] = oldest[at - 1];
        if (at < REPORTED)
            oldest[at] = entry;
    }
    return count;
}

const char *srq_tags_report_list(FILE *out, const struct srq *srq, const char *separator)
{
    uint32_t oldest[REPORTED];
    if (!srq->tags || !lock_try(&srq->tags->lock))
        return separator;
    const struct tags *tags = &srq->tags->tags;
    uint32_t count = collect(&tags->list, oldest);
    for (uint32_t i = 0; i < count; i++) {
        const struct tag_entry *entry = &tags->list.entries[oldest[i]];
        struct facts_tag facts = {.srq = {srq->object.handle, true},
                                  .tag = {entry->tag, true},
                                  .mask = {tags->list.masks[entry->mask].mask, true},
                                  .wr_id = {.known = true},
                                  .bytes = {.known = true},
                                  .enabled = {entry->sequence < tags->enabled_before, true}};
        tags_describe(tags, oldest[i], &facts.wr_id.value, &facts.bytes.value);
        fputs(separator, out);
        facts_write(out, &facts_of_tag, &facts);
        separator = ",";
    }
    lock_release(&srq->tags->lock);
    return separator;
}
