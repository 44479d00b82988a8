/* ibv_post_send(3). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/likely.h"
#include "base/result.h"
#include "diag/log.h"
#include "events/refusal.h"
#include "events/words.h"
#include "link/guard.h"
#include "process/poller.h"
#include "runtime/clock.h"
#include "verbs/disturb/scripted.h"
#include "verbs/memory/mw.h"
#include "verbs/qp/mw_bind.h"
#include "verbs/qp/qp_doors.h"
#include "verbs/qp/qp_tell.h"
#include "verbs/send/ah.h"
#include "verbs/send/operations.h"
#include "verbs/send/post.h"
#include "verbs/send/transmit.h"
#include "wire/guarded.h"

enum { POST_TEXT = 96 };

bool post_is_legal(const struct qp *qp, unsigned opcode)
{
    return opcode < 32 && (qp->kind->opcodes & OPCODE_BIT(opcode));
}

/* Returns true for a SEND or WRITE of a connection, as nearly all work is: it has only the operands of `rdma`, and may
 * have all flags except IP_CSUM. */
static inline bool is_usual(const struct qp *qp, const struct ibv_send_wr *wr)
{
    return likely(qp->traits & QP_END_TO_END && wr->opcode < 32 && (OPCODES_MESSAGE & OPCODE_BIT(wr->opcode)) &&
                  !(wr->send_flags & ~(unsigned)SEND_FLAGS));
}

/* Returns true for a SEND of SRD, as nearly all its work by this call is: it has only the operands of `ud`. */
static inline bool is_usual_message(const struct qp *qp, const struct ibv_send_wr *wr)
{
    const unsigned flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
    return qp->traits & QP_UNORDERED && wr->opcode < 32 && (OPCODES_UD & OPCODE_BIT(wr->opcode)) && wr->wr.ud.ah &&
           !(wr->send_flags & ~flags) && post_signals(qp, wr->send_flags);
}

bool post_signals(const struct qp *qp, unsigned flags)
{
    return !(qp->traits & QP_UNORDERED) || qp->sends.signal_all || flags & IBV_SEND_SIGNALED;
}

bool post_takes_inline(unsigned opcode)
{
    return OPCODES_INLINE & OPCODE_BIT(opcode);
}

enum reason post_check_tso(const struct qp *qp, uint32_t header, uint32_t mss)
{
    return header > qp->ethernet.max_tso_header || !mss ? REASON_RAW_TSO_HEADER : REASON_NONE;
}

bool post_set_tso(const struct qp *qp, struct send_wqe *work, const void *header, uint16_t length, uint16_t mss)
{
    work->remote_address = qp->cap.max_send_sge * sizeof(struct ibv_sge);
    work->compare_or_add = length;
    work->swap = mss;
    return guarded_copy(raw_tso_header(work), header, length);
}

enum reason post_check_window(const struct ibv_mw *mw)
{
    if (!mw)
        return REASON_NULL_ARGUMENT;
    return mw->type == IBV_MW_TYPE_2 ? REASON_NONE : REASON_BIND_TYPE;
}

static inline bool has_too_many_sges(const struct qp *qp, const struct ibv_send_wr *wr)
{
    return (uint32_t)wr->num_sge > qp->cap.max_send_sge; /* a negative number, too */
}

/* Makes the checks that need no slot, in the order that is easiest for the program to understand. */
cold static enum reason post_refuse_slow(const struct qp *qp, const struct ibv_send_wr *wr)
{
    if (!post_is_legal(qp, wr->opcode))
        return REASON_SEND_OPCODE;
    if (has_too_many_sges(qp, wr))
        return REASON_TOO_MANY_SGES;
    if (wr->send_flags & ~qp->kind->send_flags)
        return REASON_SEND_FLAGS;
    if (qp->traits & QP_ADDRESSED)
        return REASON_SEND_OPCODE; /* no struct ibv_send_wr has an address for it: builders have */
    if (qp->traits & QP_UNORDERED && !(OPCODES_UD & OPCODE_BIT(wr->opcode)))
        return REASON_SEND_OPCODE; /* the device's library has READs and WRITEs for builders alone */
    if (!post_signals(qp, wr->send_flags))
        return REASON_SEND_UNSIGNALLED;
    if ((wr->send_flags & IBV_SEND_INLINE) && !post_takes_inline(wr->opcode))
        return REASON_SEND_FLAGS;
    if (qp->traits & QP_DATAGRAM && !wr->wr.ud.ah)
        return REASON_SEND_NO_AH;
    if (wr->opcode == IBV_WR_BIND_MW)
        return post_check_window(wr->bind_mw.mw);
    if (wr->opcode == IBV_WR_TSO)
        return post_check_tso(qp, wr->tso.hdr_sz, wr->tso.mss);
    return REASON_NONE;
}

/* Work that is posted, and what is known of it. */
enum usual {
    POST_ANY,     /* nothing */
    POST_USUAL,   /* is_usual or is_usual_read */
    POST_MESSAGE, /* is_usual_message */
};

static inline enum reason post_refuse(const struct qp *qp, const struct ibv_send_wr *wr, enum usual usual)
{
    if (usual == POST_ANY)
        return post_refuse_slow(qp, wr);
    return has_too_many_sges(qp, wr) ? REASON_TOO_MANY_SGES : REASON_NONE;
}

/* Copies an element after the `work->length` bytes that are already copied. */
static inline enum reason copy_inline_sge(const struct qp *qp, struct send_wqe *work, const struct ibv_sge *sge)
{
    if (sge->length > qp->cap.max_inline_data - work->length)
        return REASON_INLINE_TOO_LONG;
    if (!guarded_copy(work->inline_data + work->length, (const void *)(uintptr_t)sge->addr, sge->length))
        return REASON_SEND_UNREADABLE;
    work->length += sge->length;
    return REASON_NONE;
}

cold static enum reason copy_inline_list(const struct qp *qp, struct send_wqe *work, const struct ibv_send_wr *wr)
{
    enum reason reason = REASON_NONE;
    for (int i = 0; i < wr->num_sge && !reason; i++)
        reason = copy_inline_sge(qp, work, &wr->sg_list[i]);
    return reason;
}

static inline enum reason copy_inline(const struct qp *qp, struct send_wqe *work, const struct ibv_send_wr *wr)
{
    work->length = 0;
    work->sge_count = 0;
    return likely(wr->num_sge == 1) ? copy_inline_sge(qp, work, wr->sg_list) : copy_inline_list(qp, work, wr);
}

static inline enum reason copy_list(struct send_wqe *work, const struct ibv_send_wr *wr)
{
    uint64_t length = 0;
    for (int i = 0; i < wr->num_sge; i++) {
        work->sge[i] = wr->sg_list[i];
        length += wr->sg_list[i].length;
    }
    work->length = length > UINT32_MAX ? UINT32_MAX : (uint32_t)length; /* either way too long: the engine says so */
    work->sge_count = (uint8_t)wr->num_sge;
    return REASON_NONE;
}

static enum reason copy_local(struct send_wqe *work, const struct ibv_send_wr *wr)
{
    work->sge_count = 0;
    work->length = 0;
    if (wr->opcode == IBV_WR_BIND_MW)
        return mw_describe_bind(work, wr->bind_mw.mw, wr->bind_mw.rkey, &wr->bind_mw.bind_info);
    return REASON_NONE;
}

static inline enum reason copy_data(const struct qp *qp, struct send_wqe *work, const struct ibv_send_wr *wr)
{
    return wr->send_flags & IBV_SEND_INLINE ? copy_inline(qp, work, wr) : copy_list(work, wr);
}

static inline void copy_receiver(struct send_wqe *work, const struct ibv_send_wr *wr)
{
    work->address = wr->wr.ud.ah;
    work->remote_qp = wr->wr.ud.remote_qpn;
    work->remote_qkey = wr->wr.ud.remote_qkey;
    work->swap = ah_route(wr->wr.ud.ah);
}

/* Copies what the opcode or the kind needs besides the data. False: part of it can't be read. */
static bool copy_parameters(const struct qp *qp, struct send_wqe *work, const struct ibv_send_wr *wr)
{
    if (qp->traits & QP_DATAGRAM) {
        copy_receiver(work, wr);
    } else if (wr->opcode == IBV_WR_TSO) {
        if (!post_set_tso(qp, work, wr->tso.hdr, wr->tso.hdr_sz, wr->tso.mss))
            return false;
    } else if (OPCODES_ATOMIC & OPCODE_BIT(wr->opcode)) {
        work->remote_address = wr->wr.atomic.remote_addr;
        work->rkey = wr->wr.atomic.rkey;
        work->compare_or_add = wr->wr.atomic.compare_add;
        work->swap = wr->wr.atomic.swap;
    } else {
        work->remote_address = wr->wr.rdma.remote_addr;
        work->rkey = wr->wr.rdma.rkey;
    }
    if (qp->traits & QP_NAMES_SRQ)
        work->remote_srq = wr->qp_type.xrc.remote_srqn;
    return true;
}

cold static enum reason copy_work_slow(const struct qp *qp, struct send_wqe *work, const struct ibv_send_wr *wr)
{
    if (OPCODES_LOCAL & OPCODE_BIT(wr->opcode))
        return copy_local(work, wr);
    enum reason reason = copy_data(qp, work, wr);
    return reason || copy_parameters(qp, work, wr) ? reason : REASON_SEND_UNREADABLE;
}

static inline enum reason copy_work(const struct qp *qp, struct send_wqe *work, const struct ibv_send_wr *wr,
                                    enum usual usual)
{
    if (usual == POST_ANY)
        return copy_work_slow(qp, work, wr);
    if (usual == POST_MESSAGE) {
        copy_receiver(work, wr);
    } else {
        work->remote_address = wr->wr.rdma.remote_addr;
        work->rkey = wr->wr.rdma.rkey;
    }
    return copy_data(qp, work, wr);
}

bool post_enter_batch(struct qp *qp)
{
    if (lock_try(&qp->batch.lock))
        return true;
    if (atomic_load_explicit(&qp->batch.owner, memory_order_relaxed) == (uintptr_t)pthread_self())
        return false;
    lock_take(&qp->batch.lock);
    return true;
}

static inline struct send_wqe *reserve_in(struct qp *qp, const struct send_queue *queue, uint32_t posted)
{
    if (posted - atomic_load_explicit(&qp->sends.retired, memory_order_acquire) >= qp->cap.max_send_wr)
        return NULL;
    struct send_wqe *work = send_queue_reserve(queue);
    if (work)
        work->owner_value = 0;
    return work;
}

struct send_wqe *post_reserve_in(struct qp *qp, const struct send_queue *queue, uint32_t posted)
{
    return reserve_in(qp, queue, posted);
}

struct send_wqe *post_reserve(struct qp *qp)
{
    return reserve_in(qp, engine_queue(qp_engine(qp)), qp->sends.posted);
}

void post_commit(struct qp *qp, struct send_wqe *work, nanos now)
{
    lock_assert_held(&qp->lock);
    work->posted = send_queue_when(now);
    send_queue_commit(engine_queue(qp_engine(qp)));
    qp->sends.posted++;
}

/* `usual` is a constant, so that the compiler leaves out the other checks for nearly all work. */
__attribute__((always_inline)) static inline enum reason post_as(struct qp *qp, const struct ibv_send_wr *wr,
                                                                 enum usual usual, uint32_t when)
{
    enum reason reason = post_refuse(qp, wr, usual);
    if (reason)
        return reason;
    struct send_queue *queue = engine_queue(qp_engine(qp));
    struct send_wqe *work = reserve_in(qp, queue, qp->sends.posted);
    if (!work)
        return REASON_SEND_QUEUE_FULL;
    work->id = wr->wr_id;
    work->opcode = (uint8_t)wr->opcode;
    work->flags = (uint8_t)wr->send_flags;
    work->immediate = wr->invalidate_rkey;
    reason = copy_work(qp, work, wr, usual);
    if (reason)
        return reason;
    send_queue_commit_at(queue, work);
    qp->sends.posted++;
    work->posted = when;
    return REASON_NONE;
}

/* A READ has the parameters of a WRITE, and differs only in that it is never inline. */
static inline bool is_usual_read(const struct qp *qp, const struct ibv_send_wr *wr)
{
    return qp->traits & QP_END_TO_END && wr->opcode == IBV_WR_RDMA_READ &&
           !(wr->send_flags & ~(unsigned)(SEND_FLAGS & ~IBV_SEND_INLINE));
}

cold static enum reason post_one_slow(struct qp *qp, const struct ibv_send_wr *wr, uint32_t when)
{
    return is_usual_read(qp, wr) ? post_as(qp, wr, POST_USUAL, when) : post_as(qp, wr, POST_ANY, when);
}

/* Work that is no message of SRD takes the slow way. */
__attribute__((noinline)) static enum reason post_message(struct qp *qp, const struct ibv_send_wr *wr, uint32_t when)
{
    return is_usual_message(qp, wr) ? post_as(qp, wr, POST_MESSAGE, when) : post_one_slow(qp, wr, when);
}

static inline enum reason post_one(struct qp *qp, const struct ibv_send_wr *wr, uint32_t when)
{
    return is_usual(qp, wr) ? post_as(qp, wr, POST_USUAL, when) : post_message(qp, wr, when);
}

/* Writes the numbers of the queue pair that explain the reason. */
static void describe_queue(const struct qp *qp, enum reason reason, char text[POST_TEXT])
{
    const struct ibv_qp_cap *cap = &qp->cap;
    text[0] = 0;
    if (reason == REASON_SEND_STATE)
        snprintf(text, POST_TEXT, "the queue pair is in %s", words_state(qp->state));
    else if (reason == REASON_SEND_QUEUE_FULL)
        snprintf(text, POST_TEXT, "max_send_wr is %u", cap->max_send_wr);
    else if (reason == REASON_TOO_MANY_SGES)
        snprintf(text, POST_TEXT, "max_send_sge is %u", cap->max_send_sge);
    else if (reason == REASON_INLINE_TOO_LONG)
        snprintf(text, POST_TEXT, "max_inline_data is %u", cap->max_inline_data);
    else if (reason == REASON_RAW_TSO_HEADER)
        snprintf(text, POST_TEXT, "max_tso_header is %u", qp->ethernet.max_tso_header);
    else if (reason == REASON_SEND_OPCODE)
        snprintf(text, POST_TEXT, "qp_type is %u", qp->ibv.qp_type);
}

const char *const qp_posting_calls[QP_POSTING_CALLS] = {"ibv_post_send", "ibv_wr_complete", "ibv_bind_mw"};

/* Programs that don't look at the result of a refused post may wait for its completion; reports then say why. */
void post_note_refused(struct qp *qp, enum reason reason, const char *name)
{
    uint8_t call = 0;
    while (call < QP_POSTING_CALLS && strcmp(name, qp_posting_calls[call]) != 0)
        call++;
    if (call == QP_POSTING_CALLS)
        return;
    lock_take(&qp->lock);
    struct qp_refused_posts *posts = &qp->told.posts;
    bool again = posts->count && posts->posted == qp->sends.posted;
    *posts = (struct qp_refused_posts){again ? posts->count + 1 : 1, qp->sends.posted, (uint16_t)reason, call};
    lock_release(&qp->lock);
}

/* The errno of a refused post, where it is not EINVAL. */
static const struct {
    enum reason reason;
    int error;
} errors[] = {{REASON_SEND_QUEUE_FULL, ENOMEM},
              {REASON_MKEY_LAYOUT, ENOMEM},
              {REASON_SEND_UNREADABLE, EFAULT},
              {REASON_MLX5_LACKED, EOPNOTSUPP}};

static int error_of(enum reason reason)
{
    int error = EINVAL;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].reason == reason)
            error = errors[i].error;
    return error;
}

int post_refused(struct qp *qp, const char *name, uint64_t id, enum reason reason, const char *text)
{
    char call[QP_TELL_UNCHANGED + 96], missed[QP_TELL_UNCHANGED], queue[POST_TEXT];
    enum reason before = reason == REASON_SEND_STATE ? qp->told.unchanged : REASON_NONE;
    int error = error_of(reason);
    post_note_refused(qp, reason, name);
    refusal_keep(reason);
    if (log_leaves_out(LOG_WARN, reason)) /* programs post until the queue is full */
        return result_failure(error);
    snprintf(call, sizeof call, "qp 0x%x: %s of wr_id %llu%s", qp->number, name, (unsigned long long)id,
             qp_tell_unchanged(before, missed));
    describe_queue(qp, reason, queue);
    return result_failure(refuse_in(call, error, reason, "%s%s%s", queue, queue[0] && text[0] ? ", " : "", text));
}

static unsigned long long length_of(const struct ibv_send_wr *wr)
{
    unsigned long long length = 0;
    for (int i = 0; i < wr->num_sge; i++)
        length += wr->sg_list[i].length;
    return length;
}

/* Refuses work, and writes the numbers of the work request that explain the reason. `wr` may be NULL: the state refuses
 * even an empty list. */
cold static int refuse_work(struct qp *qp, const struct ibv_send_wr *wr, enum reason reason)
{
    char text[POST_TEXT] = "";
    if (reason == REASON_SEND_OPCODE)
        snprintf(text, sizeof text, "opcode %u", wr->opcode);
    else if (reason == REASON_TOO_MANY_SGES)
        snprintf(text, sizeof text, "num_sge %d", wr->num_sge);
    else if (reason == REASON_SEND_FLAGS)
        snprintf(text, sizeof text, "send_flags are 0x%x, opcode %u", wr->send_flags, wr->opcode);
    else if (reason == REASON_INLINE_TOO_LONG)
        snprintf(text, sizeof text, "and the data has %llu bytes", length_of(wr));
    else if (reason == REASON_RAW_TSO_HEADER)
        snprintf(text, sizeof text, "hdr_sz %u, mss %u", wr->tso.hdr_sz, wr->tso.mss);
    else if (reason == REASON_BIND_TYPE)
        snprintf(text, sizeof text, "mw is of type %d", wr->bind_mw.mw->type);
    else if (reason == REASON_NULL_ARGUMENT)
        snprintf(text, sizeof text, "bind_mw.mw is NULL");
    else if (reason == REASON_BIND_FLAGS)
        snprintf(text, sizeof text, "mw_access_flags are 0x%x", wr->bind_mw.bind_info.mw_access_flags);
    return post_refused(qp, "ibv_post_send", wr ? wr->wr_id : 0, reason, text);
}

bool post_is_open(const struct qp *qp)
{
    uint8_t state = atomic_load_explicit(&qp->state, memory_order_relaxed);
    return state == IBV_QPS_RTS || state == IBV_QPS_SQD || state == IBV_QPS_SQE || state == IBV_QPS_ERR;
}

bool post_all_retired(const struct ibv_qp *ibv)
{
    const struct qp *qp = (const struct qp *)ibv;
    return atomic_load(&qp->sends.retired) == qp->sends.posted;
}

void post_start(struct qp *qp, nanos now)
{
    lock_assert_held(&qp->lock);
    poller_active(qp->process);
    qp_door_posted(qp);
    qp_transmit_guarded(qp, now);
}

static enum reason post_list(struct qp *qp, struct ibv_send_wr **wr)
{
    nanos now = clock_about_now();
    bool open = post_is_open(qp), opened = guard_begin(now);
    enum reason reason = open ? REASON_NONE : REASON_SEND_STATE;
    struct ibv_send_wr *next = *wr;
    uint32_t when = send_queue_when(now);
    while (next && !reason && !(reason = post_one(qp, next, when)))
        next = next->next;
    *wr = next;
    if (open)
        post_start(qp, now);
    guard_end(opened);
    return reason;
}

int scripted_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct script_end end, struct ibv_send_wr **bad)
{
    struct qp *qp = qp_of(ibv);
    enum reason reason = REASON_SEND_BATCH;
    nanos now = clock_about_now();
    if (post_enter(qp)) {
        lock_take(&qp->lock);
        bool opened = guard_begin(now);
        reason = post_is_open(qp) ? post_one(qp, wr, send_queue_when(now)) : REASON_SEND_STATE;
        if (!reason) {
            struct send_queue *queue = engine_queue(qp_engine(qp));
            struct send_wqe *work = send_queue_at(queue, queue->tail - 1);
            scripted_mark(work, end);
            post_start(qp, now);
        }
        guard_end(opened);
        lock_release(&qp->lock);
        post_leave(qp);
    }
    if (!reason)
        return 0;
    *bad = wr;
    return refuse_work(qp, wr, reason);
}

/* Flattened, which inlines the way into the link: work that is done directly returns only once after its system call
 * (shm_direct), and a SEND saves the call. */
__attribute__((flatten)) int qp_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    struct qp *qp = qp_of(ibv);
    enum reason reason = REASON_SEND_BATCH;
    bool wanted = false;
    if (post_enter(qp)) {
        lock_take(&qp->lock);
        reason = post_list(qp, &wr);
        wanted = lock_release_wanted(&qp->lock); /* READs and WRITEs that were done directly take long */
        post_leave(qp);
    }
    if (unlikely(reason != REASON_NONE)) {
        *bad = wr;
        return refuse_work(qp, wr, reason);
    }
    if (unlikely(wanted)) /* the queue pair may be gone after this */
        lock_let_others_in();
    return 0;
}
