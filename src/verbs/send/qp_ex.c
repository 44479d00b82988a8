#include "verbs/send/qp_ex.h"

#include <string.h>

#include "base/likely.h"
#include "link/guard.h"
#include "runtime/clock.h"
#include "verbs/disturb/scripted.h"
#include "verbs/memory/mw.h"
#include "verbs/qp/mw_bind.h"
#include "verbs/qp/qp_datapath.h"
#include "verbs/send/ah.h"
#include "verbs/send/post.h"
#include "wire/guarded.h"

enum { ATOMIC_WRITE_LENGTH = 8 }; /* bytes of its value, which need no room for inline data in the queue pair */

static inline struct qp *qp_of_ex(struct ibv_qp_ex *ibv)
{
    return (struct qp *)ibv;
}

static void spoil(struct qp *qp, enum reason reason)
{
    if (!qp->batch.reason)
        qp->batch.reason = reason;
    qp->batch.work = NULL;
}

static void finish_work(struct qp *qp)
{
    if (qp->batch.work && qp->traits & (QP_DATAGRAM | QP_ADDRESSED) && !qp->batch.work->address)
        return spoil(qp, REASON_SEND_NO_AH);
    if (qp->batch.work) {
        send_queue_commit(&qp->batch.queue);
        qp->batch.posted++;
    }
    qp->batch.work = NULL;
}

/* Begins a batch. No other thread posts before it has ended: it owns the places after the tail. */
static void begin_batch(struct qp *qp)
{
    lock_assert_held(&qp->lock);
    lock_assert_held(&qp->batch.lock);
    const struct send_queue *staged = &qp_datapath(qp)->staged;
    qp->batch.queue = staged->memory ? *staged : *engine_queue(qp_engine(qp));
    qp->batch.queue.head = qp->batch.queue.tail; /* posted work that was not polled limits the batch, not the places */
    qp->batch.posted = qp->sends.posted;
    qp->batch.begun = clock_about_now();
    qp->batch.resets = qp->sends.resets;
    qp->batch.reason = post_is_open(qp) ? REASON_NONE : REASON_SEND_STATE;
}

static void wr_start(struct ibv_qp_ex *ibv)
{
    struct qp *qp = qp_of_ex(ibv);
    if (!post_enter_batch(qp))
        return spoil(qp, REASON_SEND_BATCH);
    atomic_store_explicit(&qp->batch.owner, (uintptr_t)pthread_self(), memory_order_relaxed);
    qp->batch.work = NULL;
    lock_take(&qp->lock);
    begin_batch(qp);
    lock_release(&qp->lock);
}

static void leave_batch(struct qp *qp)
{
    atomic_store_explicit(&qp->batch.owner, 0, memory_order_relaxed);
    lock_release(&qp->batch.lock);
}

static void roll_back(struct qp *qp)
{
    struct send_queue *queue = &qp->batch.queue;
    while (queue->tail != queue->head)
        mw_forget_bind(send_queue_at(queue, --queue->tail));
}

static void wr_abort(struct ibv_qp_ex *ibv)
{
    struct qp *qp = qp_of_ex(ibv);
    roll_back(qp);
    leave_batch(qp);
}

/* Work that the engine posted meanwhile keeps its places, and the batch gets the next ones. */
static void copy_staged(const struct send_queue *staged, struct send_queue *queue)
{
    for (uint32_t at = staged->head; at != staged->tail; at++) {
        memcpy(send_queue_reserve(queue), send_queue_at(staged, at), queue->stride);
        send_queue_commit(queue);
    }
}

/* Enters the batch, unless a reset has dropped it. */
static enum reason enter_batch(struct qp *qp)
{
    lock_assert_held(&qp->lock);
    if (qp->batch.reason)
        return qp->batch.reason;
    if (qp->sends.resets != qp->batch.resets)
        return REASON_SEND_STATE;
    nanos now = clock_about_now();
    for (uint32_t at = qp->batch.queue.head; at != qp->batch.queue.tail; at++)
        send_queue_at(&qp->batch.queue, at)->posted = send_queue_when(now);
    if (qp_datapath(qp)->staged.memory)
        copy_staged(&qp->batch.queue, engine_queue(qp_engine(qp)));
    else
        engine_queue(qp_engine(qp))->tail = qp->batch.queue.tail;
    qp->sends.posted = qp->batch.posted;
    bool opened = guard_begin(now);
    post_start(qp, now);
    guard_end(opened);
    return REASON_NONE;
}

static int wr_complete(struct ibv_qp_ex *ibv)
{
    struct qp *qp = qp_of_ex(ibv);
    finish_work(qp);
    lock_take(&qp->lock);
    enum reason reason = enter_batch(qp);
    bool wanted = lock_release_wanted(&qp->lock);
    if (reason)
        roll_back(qp);
    leave_batch(qp);
    if (unlikely(wanted && !reason)) /* the queue pair may be gone after this */
        lock_let_others_in();
    return reason ? post_refused(qp, "ibv_wr_complete", ibv->wr_id, reason, "") : 0;
}

/* Begins work of any opcode; NULL when the batch is spoilt. */
static inline struct send_wqe *begin_work(struct qp *qp, unsigned opcode)
{
    struct send_wqe *work = post_reserve_in(qp, &qp->batch.queue, qp->batch.posted);
    if (!work)
        return spoil(qp, REASON_SEND_QUEUE_FULL), NULL;
    work->id = qp->extended.wr_id;
    work->opcode = (uint8_t)opcode;
    work->flags = qp->extended.wr_flags & qp->kind->send_flags & ~(unsigned)IBV_SEND_INLINE;
    work->sge_count = 0;
    work->length = 0;
    work->address = NULL;
    work->remote_srq = 0;
    return qp->batch.work = work;
}

/* Begins the next work request of the batch; NULL when the batch is spoilt. */
struct send_wqe *qp_ex_begin(struct ibv_qp_ex *ibv, enum ibv_wr_opcode opcode)
{
    struct qp *qp = qp_of_ex(ibv);
    finish_work(qp);
    if (qp->batch.reason)
        return NULL;
    if (!post_is_legal(qp, opcode))
        return spoil(qp, REASON_SEND_OPCODE), NULL;
    if (qp->traits & QP_UNORDERED && ibv->wr_flags & ~qp->kind->send_flags)
        return spoil(qp, REASON_SEND_FLAGS), NULL;
    if (!post_signals(qp, ibv->wr_flags))
        return spoil(qp, REASON_SEND_UNSIGNALLED), NULL;
    return begin_work(qp, opcode);
}

struct send_wqe *qp_ex_begin_vendor(struct qp *qp, unsigned opcode)
{
    finish_work(qp);
    return qp->batch.reason ? NULL : begin_work(qp, opcode);
}

void qp_ex_spoil(struct qp *qp, enum reason reason)
{
    spoil(qp, reason);
}

static void begin_remote(struct ibv_qp_ex *ibv, enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t address,
                         uint32_t immediate)
{
    struct send_wqe *work = qp_ex_begin(ibv, opcode);
    if (!work)
        return;
    work->rkey = rkey;
    work->remote_address = address;
    work->immediate = immediate;
}

static void wr_rdma_write(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t address)
{
    begin_remote(ibv, IBV_WR_RDMA_WRITE, rkey, address, 0);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t address, __be32 immediate)
{
    begin_remote(ibv, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, address, immediate);
}

static void wr_rdma_read(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t address)
{
    begin_remote(ibv, IBV_WR_RDMA_READ, rkey, address, 0);
}

static void wr_send(struct ibv_qp_ex *ibv)
{
    begin_remote(ibv, IBV_WR_SEND, 0, 0, 0);
}

static void wr_send_imm(struct ibv_qp_ex *ibv, __be32 immediate)
{
    begin_remote(ibv, IBV_WR_SEND_WITH_IMM, 0, 0, immediate);
}

static void wr_send_inv(struct ibv_qp_ex *ibv, uint32_t rkey)
{
    begin_remote(ibv, IBV_WR_SEND_WITH_INV, 0, 0, rkey);
}

static void wr_local_inv(struct ibv_qp_ex *ibv, uint32_t rkey)
{
    begin_remote(ibv, IBV_WR_LOCAL_INV, 0, 0, rkey);
}

static void wr_bind_mw(struct ibv_qp_ex *ibv, struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *info)
{
    struct send_wqe *work = qp_ex_begin(ibv, IBV_WR_BIND_MW);
    if (!work)
        return;
    enum reason reason = post_check_window(mw);
    if (!reason)
        reason = mw_describe_bind(work, mw, rkey, info);
    if (reason)
        return spoil(qp_of_ex(ibv), reason);
    finish_work(qp_of_ex(ibv)); /* no setter follows, and roll_back takes back only work that was entered */
}

static void set_tso(struct qp *qp, struct send_wqe *work, const void *header, uint16_t length, uint16_t mss)
{
    bool opened = guard_begin(qp->batch.begun);
    if (!post_set_tso(qp, work, header, length, mss))
        spoil(qp, REASON_SEND_UNREADABLE);
    guard_end(opened);
}

static void wr_send_tso(struct ibv_qp_ex *ibv, void *header, uint16_t length, uint16_t mss)
{
    struct qp *qp = qp_of_ex(ibv);
    struct send_wqe *work = qp_ex_begin(ibv, IBV_WR_TSO);
    enum reason reason = work ? post_check_tso(qp, length, mss) : REASON_NONE;
    if (reason)
        spoil(qp, reason);
    else if (work)
        set_tso(qp, work, header, length, mss);
}

static void begin_atomic(struct ibv_qp_ex *ibv, enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t address,
                         uint64_t compare_or_add, uint64_t swap)
{
    struct send_wqe *work = qp_ex_begin(ibv, opcode);
    if (!work)
        return;
    work->rkey = rkey;
    work->remote_address = address;
    work->compare_or_add = compare_or_add;
    work->swap = swap;
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t address, uint64_t compare, uint64_t swap)
{
    begin_atomic(ibv, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, address, compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t address, uint64_t add)
{
    begin_atomic(ibv, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, address, add, 0);
}

static enum reason copy_inline(struct send_wqe *work, const struct ibv_data_buf *buffers, size_t count, uint32_t most)
{
    for (size_t i = 0; i < count; i++) {
        if (buffers[i].length > most - work->length)
            return REASON_INLINE_TOO_LONG;
        if (!guarded_copy(work->inline_data + work->length, buffers[i].addr, buffers[i].length))
            return REASON_SEND_UNREADABLE;
        work->length += (uint32_t)buffers[i].length;
    }
    work->flags |= IBV_SEND_INLINE;
    return REASON_NONE;
}

/* WRITEs of EFA have inline data only if the queue pair was made for it. */
static bool is_write_without_inline(const struct qp *qp, const struct send_wqe *work)
{
    unsigned opcode = send_wqe_posted_opcode(work);
    return qp->traits & QP_UNORDERED && !(qp->sends.options & SRD_INLINE_WRITE) && opcode != IBV_WR_SEND &&
           opcode != IBV_WR_SEND_WITH_IMM;
}

static void set_inline(struct qp *qp, const struct ibv_data_buf *buffers, size_t count)
{
    struct send_wqe *work = qp->batch.work;
    if (!work)
        return;
    if (!post_takes_inline(send_wqe_posted_opcode(work)) || is_write_without_inline(qp, work))
        return spoil(qp, REASON_SEND_FLAGS);
    bool opened = guard_begin(qp->batch.begun);
    enum reason reason = copy_inline(
        work, buffers, count, work->opcode == IBV_WR_ATOMIC_WRITE ? ATOMIC_WRITE_LENGTH : qp->cap.max_inline_data);
    guard_end(opened);
    if (reason)
        spoil(qp, reason);
}

static void wr_atomic_write(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t address, const void *value)
{
    begin_remote(ibv, IBV_WR_ATOMIC_WRITE, rkey, address, 0);
    set_inline(qp_of_ex(ibv), &(struct ibv_data_buf){(void *)(uintptr_t)value, ATOMIC_WRITE_LENGTH}, 1);
}

/* The header has 32 bits for the length: a program posts a longer range in parts. */
static void wr_flush(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t address, size_t length, uint8_t placement,
                     uint8_t selectivity)
{
    struct qp *qp = qp_of_ex(ibv);
    begin_remote(ibv, IBV_WR_RDMA_READ, rkey, address, 0); /* types of queue pairs that have READs have flushes */
    if (!qp->batch.work)
        return;
    if (!placement || placement & ~(NEWER_FLUSH_GLOBAL | NEWER_FLUSH_PERSISTENT))
        return spoil(qp, REASON_FLUSH_PARAMETERS);
    if (selectivity > NEWER_FLUSH_REGION)
        return spoil(qp, REASON_FLUSH_LEVEL);
    if (length > UINT32_MAX)
        return spoil(qp, REASON_FLUSH_LENGTH);
    qp->batch.work->opcode = NEWER_WR_FLUSH;
    qp->batch.work->compare_or_add = length;
    qp->batch.work->swap = placement | selectivity << 8;
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ibv, size_t count, const struct ibv_data_buf *buffers)
{
    set_inline(qp_of_ex(ibv), buffers, count);
}

static void wr_set_inline_data(struct ibv_qp_ex *ibv, void *data, size_t length)
{
    set_inline(qp_of_ex(ibv), &(struct ibv_data_buf){data, length}, 1);
}

static void wr_set_sge_list(struct ibv_qp_ex *ibv, size_t count, const struct ibv_sge *list)
{
    struct qp *qp = qp_of_ex(ibv);
    struct send_wqe *work = qp->batch.work;
    uint64_t length = 0;
    if (!work)
        return;
    if (count > qp->cap.max_send_sge)
        return spoil(qp, REASON_TOO_MANY_SGES);
    for (size_t i = 0; i < count; i++) {
        work->sge[i] = list[i];
        length += list[i].length;
    }
    work->sge_count = (uint8_t)count;
    work->length = length > UINT32_MAX ? UINT32_MAX : (uint32_t)length;
}

static void wr_set_sge(struct ibv_qp_ex *ibv, uint32_t lkey, uint64_t address, uint32_t length)
{
    wr_set_sge_list(ibv, 1, &(struct ibv_sge){.addr = address, .length = length, .lkey = lkey});
}

static void wr_set_ud_addr(struct ibv_qp_ex *ibv, struct ibv_ah *ah, uint32_t remote_qpn, uint32_t remote_qkey)
{
    struct send_wqe *work = qp_of_ex(ibv)->batch.work;
    if (!work)
        return;
    work->address = ah;
    work->remote_qp = remote_qpn;
    work->remote_qkey = remote_qkey;
    work->swap = ah_route(ah);
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ibv, uint32_t number)
{
    struct send_wqe *work = qp_of_ex(ibv)->batch.work;
    if (work)
        work->remote_srq = number;
}

/* A binding is no work in hand: it was entered at once, as the last work of the batch. */
void scripted_build(struct ibv_qp_ex *ibv, struct script_end end)
{
    struct qp *qp = qp_of_ex(ibv);
    struct send_queue *queue = &qp->batch.queue;
    struct send_wqe *work = qp->batch.work;
    if (qp->batch.reason)
        return;
    if (!work && queue->tail != queue->head)
        work = send_queue_at(queue, queue->tail - 1);
    if (work)
        scripted_mark(work, end);
}

bool qp_ex_offers(const struct qp_kind *kind, uint64_t flags)
{
    return !(flags & ~kind->builders);
}

CALLS_CHANGER static void change_builders(struct calls_holder *holder, const struct calls_change *change)
{
    struct ibv_qp_ex *ibv = &container_of(holder, struct qp, batch.calls)->extended;
#define BUILDER(type, name, parameters, arguments) CALLS_CHANGE(change, ibv->name, ibv_##name, name);
#define NEWER_BUILDER(type, name, parameters, arguments)                                                               \
    CALLS_CHANGE(change, newer_qp_ex_tail(ibv)->name, ibv_##name, name);
#include "calls/verbs.def"
}

void qp_ex_fill(struct qp *qp)
{
    struct ibv_qp_ex *ibv = &qp->extended;
    qp->batch.exists = true;
#define BUILDER(type, name, parameters, arguments) ibv->name = name;
#define NEWER_BUILDER(type, name, parameters, arguments) newer_qp_ex_tail(ibv)->name = name;
#include "calls/verbs.def"
    calls_enter(&qp->batch.calls, change_builders);
}

void qp_ex_bottom(struct calls *calls)
{
#define BUILDER(type, name, parameters, arguments) calls->ibv_##name = name;
#define NEWER_BUILDER(type, name, parameters, arguments) calls->ibv_##name = name;
#include "calls/verbs.def"
}

struct ibv_qp_ex *qp_ex_of(struct ibv_qp *ibv)
{
    struct qp *qp = qp_of(ibv);
    return qp->batch.exists ? &qp->extended : NULL;
}
