#include "mlx5/queues/send_ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/mapping.h"
#include "link/guard.h"
#include "mlx5/queues/addresses.h"
#include "mlx5/queues/form.h"
#include "mlx5/queues/judge.h"
#include "mlx5/queues/obey.h"
#include "mlx5/queues/receive_ring.h"
#include "mlx5/queues/registers.h"
#include "mlx5/queues/tag_ring.h"
#include "verbs/kinds/dc/dc.h"
#include "verbs/kinds/srq_tags.h"
#include "verbs/qp/qp_datapath.h"
#include "verbs/qp/qp_part.h"
#include "verbs/send/post.h"
#include "wire/bytes.h"
#include "wire/payload.h"

enum { LINE = 64, RECEIVE_ELEMENT = 16, BLOCKS_MOST = 1 << 15 }; /* an index has 16 bits */

static uint32_t power_of_two(uint32_t least)
{
    uint32_t value = 1;
    while (value < least)
        value *= 2;
    return value;
}

static uint32_t aligned(uint32_t bytes, uint32_t to)
{
    return (bytes + to - 1) / to * to;
}

/* The blocks of the longest work request of a queue pair, as the adapter's library computes them: programs compute with
 * the size of the ring. */
static uint32_t blocks_of_work(const struct qp *qp)
{
    enum { FIRST = 16, REMOTE = 16, UMR = 192, ADDRESS = 48, XRC = 16, INLINE_LENGTH = 4 };
    uint32_t overhead = qp->traits & QP_DATAGRAM ? FIRST + ADDRESS : UMR + (qp->traits & QP_ADDRESSED ? ADDRESS : 0);
    overhead += qp->traits & QP_NAMES_SRQ ? XRC : 0;
    uint32_t pointers = qp->cap.max_send_sge * FORM_UNIT;
    uint32_t bytes = aligned(INLINE_LENGTH + qp->cap.max_inline_data, FORM_UNIT);
    uint32_t longest = overhead + (pointers > bytes ? pointers : bytes);
    return aligned(longest < FORM_BYTES ? longest : FORM_BYTES, FORM_BLOCK) / FORM_BLOCK;
}

/* --- making */

static uint32_t receive_stride(const struct qp *qp)
{
    return power_of_two(qp->cap.max_recv_sge ? qp->cap.max_recv_sge : 1) * RECEIVE_ELEMENT;
}

static uint32_t receive_count(const struct qp *qp)
{
    return qp_has_receives(qp) && qp->cap.max_recv_wr ? power_of_two(qp->cap.max_recv_wr) : 0;
}

static bool map_queues(struct send_ring *ring)
{
    const struct qp *qp = ring->qp;
    size_t sends = (size_t)ring->count * FORM_BLOCK, receives = (size_t)receive_count(qp) * receive_stride(qp);
    ring->size = sends + aligned((uint32_t)receives, LINE) + LINE;
    ring->memory = mapping_make(ring->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (ring->memory == MAP_FAILED)
        return false;
    ring->blocks = ring->memory;
    ring->records = (_Atomic uint32_t *)(void *)(ring->blocks + ring->size - LINE);
    ring->region = (struct region){.pd = qp->memory.pd,
                                   .base = (uint64_t)(uintptr_t)ring->blocks,
                                   .length = sends,
                                   .memory = (char *)ring->blocks,
                                   .kind = REGION_MEMORY};
    return true;
}

struct send_ring *send_ring_make(struct qp *qp)
{
    struct send_ring *ring = calloc(1, sizeof *ring);
    if (!ring)
        return NULL;
    ring->qp = qp;
    ring->count = power_of_two(qp->cap.max_send_wr * blocks_of_work(qp));
    if (ring->count > BLOCKS_MOST)
        ring->count = BLOCKS_MOST;
    if (map_queues(ring))
        return ring;
    free(ring);
    return NULL;
}

void send_ring_free(struct send_ring *ring)
{
    munmap(ring->memory, ring->size);
    free(ring);
}

void send_ring_describe(const struct send_ring *ring, struct mlx5dv_qp *to)
{
    const struct qp *qp = ring->qp;
    uint32_t sends = qp->traits & QP_SENDS ? ring->count : 0, receives = receive_count(qp);
    uint64_t asked = to->comp_mask, filled = MLX5DV_QP_MASK_RAW_QP_HANDLES;
    *to = (struct mlx5dv_qp){
        .dbrec = (__be32 *)(void *)ring->records,
        .sq = {.buf = ring->blocks, .wqe_cnt = sends, .stride = FORM_BLOCK},
        .rq = {.buf = ring->blocks + (size_t)ring->count * FORM_BLOCK,
               .wqe_cnt = receives,
               .stride = receive_stride(qp)},
        .bf = {.reg = registers_of_queue_pair(qp->number) + REGISTERS_BELL},
        .comp_mask = asked & filled,
    };
}

/* --- taking */

static bool copy_form(const struct send_ring *ring, uint16_t posted, struct form *form)
{
    form->ring = ring->region.base;
    form->key = ring->region.key;
    form->sge_most = PAYLOAD_PIECES_MAX;
    return form_copy(form, ring->blocks, ring->count, ring->taken, posted);
}

/* Reads the receiver of a datagram, or of dynamically connected work. */
static bool read_receiver(struct qp *qp, struct form *form, struct send_wqe *work)
{
    enum { NUMBER = 0xffffff, NUMBER_AT = 8, STREAM_AT = 9 };
    bool extended;
    const uint8_t *at = form_take_receiver(form, &extended);
    if (!at)
        return false;
    uint32_t number = bytes_get32(at + NUMBER_AT) & NUMBER;
    const struct ah *ah = addresses_find(qp->object.context, at, extended);
    if (qp->traits & QP_ADDRESSED) {
        dci_set_receiver(work, ah, number, bytes_get64(at), bytes_get16(form->bytes + STREAM_AT));
    } else {
        work->address = ah;
        work->remote_qp = number;
        work->remote_qkey = bytes_get32(at);
    }
    return ah;
}

static void begin_work(struct send_wqe *work, uint16_t index)
{
    work->id = index;
    work->flags = 0;
    work->sge_count = 0;
    work->length = 0;
    work->address = NULL;
    work->remote_srq = 0;
    work->owner_value = 0;
}

/* Fills work that ends in its turn by mlx5_run. */
static void fill_own(struct send_wqe *work, unsigned opcode, unsigned flags)
{
    work->opcode = (uint8_t)opcode;
    work->flags = (uint8_t)flags;
    work->sge_count = 0;
    work->length = 0;
}

/* Operations on tags are done when they are taken. They have no end of their own here, as the SRQ reports it. */
static bool operate_on_tags(struct qp *qp, const struct form *form)
{
    const struct receive_ring_form *receives = qp->uses.srq ? receive_ring_of(&qp->uses.srq->queue) : NULL;
    return receives && receives->tags && tag_ring_operate(qp->uses.srq, receives->tags, form);
}

static bool fill_work(struct qp *qp, struct form *form, struct send_wqe *work)
{
    int opcode = form_opcode(form);
    if (form_operation(form) == FORM_TAGS) {
        fill_own(work, WORK_VENDOR_NOTHING, 0);
        return operate_on_tags(qp, form);
    }
    if (form_operation(form) == FORM_NOP) {
        fill_own(work, WORK_VENDOR_NOTHING, form_signals(form) ? IBV_SEND_SIGNALED : 0);
        return true;
    }
    if (opcode < 0 || !post_is_legal(qp, (unsigned)opcode))
        return false;
    work->opcode = (uint8_t)opcode;
    if (qp->traits & (QP_DATAGRAM | QP_ADDRESSED) && !read_receiver(qp, form, work))
        return false;
    return form_fill(qp, form, work, (uint32_t)opcode);
}

/* Takes the next work request. A malformed one ends in its turn, as failed; without a length it hides where the next
 * one begins, and all that was posted goes with it. False: no place of the send queue is free. */
static bool take_next(struct send_ring *ring, uint16_t posted, nanos now)
{
    struct form form;
    struct qp *qp = ring->qp;
    struct send_wqe *work = send_queue_reserve(engine_queue(qp_engine(qp)));
    if (!work)
        return false;
    bool whole = copy_form(ring, posted, &form);
    begin_work(work, ring->taken);
    if (unlikely(judge_is_wanted()))
        judge_form(ring, &form, posted, whole);
    bool fits = whole && fill_work(qp, &form, work);
    if (unlikely(whole && judge_is_wanted()))
        judge_work(ring, &form, work, fits);
    if (!fits)
        fill_own(work, WORK_VENDOR_MALFORMED, IBV_SEND_SIGNALED);
    else if (!qp_part_runs(work))
        obey_work(qp, work);
    uint16_t next = whole ? (uint16_t)(ring->taken + form_blocks(&form)) : posted;
    atomic_store_explicit(&ring->taken, next, memory_order_relaxed);
    post_commit(qp, work, now);
    return true;
}

static bool may_take(const struct qp *qp)
{
    return post_is_open(qp) && qp->state != IBV_QPS_SQD && qp->state != IBV_QPS_SQE;
}

static unsigned take_posted(struct send_ring *ring, nanos now)
{
    struct qp *qp = ring->qp;
    lock_assert_held(&qp->lock);
    uint16_t posted =
        (uint16_t)__builtin_bswap32(atomic_load_explicit(&ring->records[RECORD_SEND], memory_order_acquire));
    unsigned taken = 0;
    while (may_take(qp) && ring->taken != posted && take_next(ring, posted, now))
        taken++;
    if (taken)
        post_start(qp, now);
    return taken;
}

/* A thread of the program may fill the next places by builders: the helper does not wait for it, and looks again. */
unsigned send_ring_take(struct send_ring *ring, nanos now)
{
    struct qp *qp = ring->qp;
    if (qp->batch.exists && !lock_try(&qp->batch.lock))
        return 1;
    lock_take(&qp->lock);
    bool opened = guard_begin(now);
    unsigned taken = take_posted(ring, now);
    guard_end(opened);
    lock_release(&qp->lock);
    post_leave(qp);
    return taken;
}

void send_ring_clear(struct send_ring *ring)
{
    lock_assert_held(&ring->qp->lock);
    atomic_store(&ring->records[RECORD_RECEIVE], 0);
    atomic_store(&ring->records[RECORD_SEND], 0);
    atomic_store_explicit(&ring->taken, 0, memory_order_relaxed);
}
