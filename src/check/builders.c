/* Posts by builders (ibv_wr_post(3)): the posts between ibv_wr_start and ibv_wr_complete are a batch of the shadow. */
#include <errno.h>
#include <pthread.h>

#include "check/destroyed/callers.h"
#include "check/layer.h"
#include "check/shadow/domain.h"
#include "check/shadow/flight.h"
#include "check/shadow/refusals.h"
#include "events/refusal.h"

#include <string.h>

/* A builder's return address is in the program, like the return address of a post. */
#define POSTED PLACE_OF_POST

static struct shadow *find(struct ibv_qp_ex *qp)
{
    return shadow_find(SHADOW_QP, &qp->qp_base);
}

/* Returns true if the queue pair was destroyed, which ibv_wr_start has reported then. Under the lock. */
static bool qp_is_lost(const struct shadow *shadow, struct ibv_qp_ex *qp)
{
    return !shadow && shadow_find_gone(SHADOW_QP, &qp->qp_base);
}

static void start(struct ibv_qp_ex *qp)
{
    hooks_see_use(SHADOW_QP, &qp->qp_base, "ibv_wr_start");
    if (hooks_is_gone(SHADOW_QP, &qp->qp_base, "ibv_wr_start"))
        return;
    uintptr_t self = (uintptr_t)pthread_self();
    shadow_lock();
    struct shadow *shadow = find(qp);
    domain_enter(shadow, "ibv_wr_start");
    if (shadow && shadow->qp.batch.thread == self)
        HOOKS_CALL(built, shadow, HOOKS_STARTED_TWICE, "ibv_wr_start");
    shadow_unlock();
    callers_open(CALLERS_BATCH, &qp->qp_base);
    layer_below(ibv_wr_start)(qp);
    shadow_lock();
    shadow = find(qp);
    if (shadow) {
        shadow->qp.batch.work.count = 0;
        shadow->qp.batch.thread = self;
        shadow->qp.batch.begun = false;
    }
    shadow_unlock();
}

/* Returns the bit of send_ops_flags for an operation. The first operations have the bit of their number. */
static uint64_t flag_of(enum ibv_wr_opcode opcode)
{
    if (opcode == IBV_WR_ATOMIC_WRITE)
        return IBV_QP_EX_WITH_ATOMIC_WRITE;
    return opcode == NEWER_WR_FLUSH ? NEWER_QP_EX_WITH_FLUSH : UINT64_C(1) << opcode;
}

/* Under the lock. */
static void judge_beginning(struct shadow *qp, enum ibv_wr_opcode opcode, const char *call)
{
    if (!qp->qp.batch.thread)
        HOOKS_CALL(built, qp, HOOKS_NOT_STARTED, call);
    if (!(qp->qp.builders & flag_of(opcode)))
        HOOKS_CALL(built, qp, HOOKS_NOT_ASKED, call);
    qp->qp.batch.begun = true;
    qp->qp.batch.has_data = false;
}

/* Under the lock. */
static void judge_data(struct shadow *qp, const char *call)
{
    if (!qp->qp.batch.thread || !qp->qp.batch.begun)
        HOOKS_CALL(built, qp, HOOKS_NOTHING_BEGUN, call);
    else if (qp->qp.batch.has_data)
        HOOKS_CALL(built, qp, HOOKS_DATA_TWICE, call);
    qp->qp.batch.has_data = true;
}

/* Ends the batch. Under the lock, before another thread can start one. */
static void judge_end(struct shadow *qp, const char *call)
{
    if (!qp->qp.batch.thread)
        HOOKS_CALL(built, qp, HOOKS_NOT_STARTED, call);
    qp->qp.batch.thread = 0;
    qp->qp.batch.begun = false;
}

/* The peer's memory that an operation names; {0}: the operation names no memory of the peer. */
struct target {
    uint64_t address;
    uint32_t rkey;
};

/* Begins a work request, which the setters complete. False: the queue pair is gone. */
static bool begin(struct ibv_qp_ex *qp, enum ibv_wr_opcode opcode, struct target target, const void *posted,
                  const char *call)
{
    shadow_lock();
    struct shadow *shadow = find(qp);
    bool gone = qp_is_lost(shadow, qp);
    struct wqe *wqe = shadow ? wqe_room(&shadow->qp.batch.work) : NULL;
    if (wqe) {
        wqe_begin(wqe, qp->wr_id, posted, opcode, qp->wr_flags & IBV_SEND_SIGNALED ? WQE_SIGNALED : 0);
        wqe->flags |= qp->wr_flags & IBV_SEND_FENCE ? WQE_FENCE : 0;
        wqe->remote = target.address;
        wqe->rkey = target.rkey;
        wqe_add(&shadow->qp.batch.work);
    }
    if (shadow)
        judge_beginning(shadow, opcode, call);
    shadow_unlock();
    return !gone;
}

/* The last work request of the batch, or NULL. */
static struct wqe *last_of(const struct shadow *qp)
{
    const struct wqe_queue *work = &qp->qp.batch.work;
    return work->count ? wqe_at(work, work->count - 1) : NULL;
}

/* False: the queue pair is gone. */
static bool set_inline(struct ibv_qp_ex *qp, size_t length, const char *call)
{
    shadow_lock();
    struct shadow *shadow = find(qp);
    bool gone = qp_is_lost(shadow, qp);
    struct wqe *wqe = shadow ? last_of(shadow) : NULL;
    if (wqe) {
        wqe->flags |= WQE_INLINE;
        wqe->length = length < UINT32_MAX ? (uint32_t)length : UINT32_MAX;
    }
    if (shadow)
        judge_data(shadow, call);
    shadow_unlock();
    return !gone;
}

/* False: the queue pair is gone. */
static bool set_list(struct ibv_qp_ex *qp, const struct ibv_sge *list, int64_t count, const char *call)
{
    shadow_lock();
    struct shadow *shadow = find(qp);
    bool gone = qp_is_lost(shadow, qp);
    struct wqe *wqe = shadow ? last_of(shadow) : NULL;
    if (wqe)
        wqe_set_list(wqe, list, count, shadow->qp.cap.max_send_sge);
    if (shadow)
        judge_data(shadow, call);
    shadow_unlock();
    return !gone;
}

static void set_ud_addr(struct ibv_qp_ex *qp, struct ibv_ah *ah, uint32_t number, uint32_t qkey)
{
    shadow_lock();
    struct shadow *shadow = find(qp);
    bool gone = qp_is_lost(shadow, qp);
    struct wqe *wqe = shadow ? last_of(shadow) : NULL;
    if (wqe)
        wqe_set_receiver(wqe, ah, number);
    if (shadow && !(shadow->qp.batch.thread && shadow->qp.batch.begun))
        HOOKS_CALL(built, shadow, HOOKS_NOTHING_BEGUN, "ibv_wr_set_ud_addr");
    shadow_unlock();
    if (!gone && !hooks_is_gone(SHADOW_AH, ah, "ibv_wr_set_ud_addr"))
        layer_below(ibv_wr_set_ud_addr)(qp, ah, number, qkey);
}

#define EX struct ibv_qp_ex *qp
#define NO_TARGET ((struct target){0})
#define TARGET ((struct target){address, rkey})
#define BEGINNINGS                                                                                                     \
    BEGINNING(IBV_WR_SEND, send, NO_TARGET, (EX), (qp))                                                                \
    BEGINNING(IBV_WR_SEND_WITH_IMM, send_imm, NO_TARGET, (EX, __be32 immediate), (qp, immediate))                      \
    BEGINNING(IBV_WR_SEND_WITH_INV, send_inv, NO_TARGET, (EX, uint32_t rkey), (qp, rkey))                              \
    BEGINNING(IBV_WR_LOCAL_INV, local_inv, NO_TARGET, (EX, uint32_t rkey), (qp, rkey))                                 \
    BEGINNING(IBV_WR_BIND_MW, bind_mw, NO_TARGET,                                                                      \
              (EX, struct ibv_mw * mw, uint32_t rkey, const struct ibv_mw_bind_info *info), (qp, mw, rkey, info))      \
    BEGINNING(IBV_WR_TSO, send_tso, NO_TARGET, (EX, void *header, uint16_t length, uint16_t mss),                      \
              (qp, header, length, mss))                                                                               \
    BEGINNING(IBV_WR_RDMA_WRITE, rdma_write, TARGET, (EX, uint32_t rkey, uint64_t address), (qp, rkey, address))       \
    BEGINNING(IBV_WR_RDMA_WRITE_WITH_IMM, rdma_write_imm, TARGET,                                                      \
              (EX, uint32_t rkey, uint64_t address, __be32 immediate), (qp, rkey, address, immediate))                 \
    BEGINNING(IBV_WR_RDMA_READ, rdma_read, TARGET, (EX, uint32_t rkey, uint64_t address), (qp, rkey, address))         \
    BEGINNING(IBV_WR_ATOMIC_CMP_AND_SWP, atomic_cmp_swp, TARGET,                                                       \
              (EX, uint32_t rkey, uint64_t address, uint64_t compare, uint64_t swap),                                  \
              (qp, rkey, address, compare, swap))                                                                      \
    BEGINNING(IBV_WR_ATOMIC_FETCH_AND_ADD, atomic_fetch_add, TARGET,                                                   \
              (EX, uint32_t rkey, uint64_t address, uint64_t add), (qp, rkey, address, add))                           \
    BEGINNING(IBV_WR_ATOMIC_WRITE, atomic_write, TARGET, (EX, uint32_t rkey, uint64_t address, const void *value),     \
              (qp, rkey, address, value))                                                                              \
    BEGINNING(NEWER_WR_FLUSH, flush, TARGET,                                                                           \
              (EX, uint32_t rkey, uint64_t address, size_t length, uint8_t placement, uint8_t selectivity),            \
              (qp, rkey, address, length, placement, selectivity))

#define BEGINNING(OPCODE, name, target, parameters, arguments)                                                         \
    static void begin_##name parameters                                                                                \
    {                                                                                                                  \
        if (begin(qp, OPCODE, target, POSTED, "ibv_wr_" #name))                                                        \
            layer_below(ibv_wr_##name) arguments;                                                                      \
    }
BEGINNINGS
#undef BEGINNING

static void set_sge(EX, uint32_t lkey, uint64_t address, uint32_t length)
{
    if (set_list(qp, &(struct ibv_sge){address, length, lkey}, 1, "ibv_wr_set_sge"))
        layer_below(ibv_wr_set_sge)(qp, lkey, address, length);
}

static void set_sge_list(EX, size_t count, const struct ibv_sge *list)
{
    if (set_list(qp, list, count < INT64_MAX ? (int64_t)count : INT64_MAX, "ibv_wr_set_sge_list"))
        layer_below(ibv_wr_set_sge_list)(qp, count, list);
}

static void set_inline_data(EX, void *data, size_t length)
{
    if (set_inline(qp, length, "ibv_wr_set_inline_data"))
        layer_below(ibv_wr_set_inline_data)(qp, data, length);
}

static void set_inline_data_list(EX, size_t count, const struct ibv_data_buf *buffers)
{
    size_t length = 0;
    for (size_t at = 0; at < count; at++)
        length += buffers[at].length;
    if (set_inline(qp, length, "ibv_wr_set_inline_data_list"))
        layer_below(ibv_wr_set_inline_data_list)(qp, count, buffers);
}

static void abort_batch(EX)
{
    shadow_lock();
    struct shadow *shadow = find(qp);
    bool gone = qp_is_lost(shadow, qp);
    if (shadow)
        judge_end(shadow, "ibv_wr_abort");
    if (shadow)
        shadow->qp.batch.work.count = 0;
    domain_leave(shadow);
    shadow_unlock();
    if (!gone)
        layer_below(ibv_wr_abort)(qp);
    callers_open(CALLERS_BATCH, NULL);
}

static void end_batch(struct ibv_qp_ex *qp, uint64_t first, unsigned count, const struct shadow_refused *post)
{
    shadow_lock();
    struct shadow *shadow = first ? find(qp) : NULL;
    if (shadow)
        flight_end(shadow, &shadow->qp.sends, first, post->error ? 0 : count, count);
    if (shadow && count && !post->error)
        refusals_drop(shadow, false);
    if (shadow && post->error)
        HOOKS_CALL(refused, shadow, post);
    domain_leave(shadow);
    shadow_unlock();
}

static int complete(EX)
{
    struct shadow_refused post = {.call = "ibv_wr_complete", .wr_id = qp->wr_id};
    shadow_lock();
    struct shadow *shadow = find(qp);
    bool gone = qp_is_lost(shadow, qp);
    unsigned count = shadow ? shadow->qp.batch.work.count : 0;
    if (shadow)
        judge_end(shadow, "ibv_wr_complete");
    if (count)
        post.posted = wqe_at(&shadow->qp.batch.work, 0)->posted;
    uint64_t first = shadow ? flight_begin_batch(shadow) : 0;
    shadow_unlock();
    if (gone)
        return errno = EINVAL;
    refusal_forget();
    post.error = layer_below(ibv_wr_complete)(qp);
    post.reason = (uint16_t)refusal_reason();
    if (post.error && !post.posted)
        post.posted = POSTED;
    callers_open(CALLERS_BATCH, NULL);
    end_batch(qp, first, count, &post);
    return post.error;
}

void builders_fill(struct calls *calls)
{
#define BEGINNING(OPCODE, name, target, parameters, arguments) calls->ibv_wr_##name = begin_##name;
    BEGINNINGS
#undef BEGINNING
    calls->ibv_wr_start = start;
    calls->ibv_wr_complete = complete;
    calls->ibv_wr_abort = abort_batch;
    calls->ibv_wr_set_ud_addr = set_ud_addr;
    calls->ibv_wr_set_sge = set_sge;
    calls->ibv_wr_set_sge_list = set_sge_list;
    calls->ibv_wr_set_inline_data = set_inline_data;
    calls->ibv_wr_set_inline_data_list = set_inline_data_list;
}
