#include "mlx5/queues/judge.h"

#include <string.h>

#include "mlx5/queues/cq_memory.h"
#include "mlx5/queues/form.h"
#include "mlx5/queues/send_ring.h"
#include "transport/request.h"
#include "verbs/qp/qp_doors.h"
#include "verbs/send/post.h"
#include "wire/bytes.h"

/* Mistakes that were noted, under process->progress. */
static struct calls_form_mistake noted[JUDGE_NOTES];
static unsigned count;

static void note_mistake(struct calls_form_mistake mistake)
{
    if (count < JUDGE_NOTES)
        noted[count++] = mistake;
}

static void note_form(const struct send_ring *ring, enum calls_form_kind kind, uint32_t found, uint32_t wanted)
{
    note_mistake((struct calls_form_mistake){kind, &ring->qp->ibv, ring->taken, found, wanted});
}

/* Blocks from the oldest work that has not ended to the index. */
static uint32_t blocks_ahead(const struct send_ring *ring, uint16_t index)
{
    const struct send_queue *queue = engine_queue(qp_engine(ring->qp));
    uint16_t oldest = queue->head == queue->tail ? ring->taken : (uint16_t)send_queue_at(queue, queue->head)->id;
    return (uint16_t)(index - oldest);
}

void judge_form(const struct send_ring *ring, const struct form *form, uint16_t posted, bool whole)
{
    enum { INDEX_AT = 1, NUMBER_AT = 4 };
    uint16_t index = bytes_get16(form->bytes + INDEX_AT);
    uint32_t number = bytes_get32(form->bytes + NUMBER_AT) >> 8, ahead = blocks_ahead(ring, posted);
    if (ahead > ring->count)
        return note_form(ring, CALLS_FORM_OVERRUN, ahead, ring->count); /* what is there may be another work request */
    if (!whole)
        note_form(ring, CALLS_FORM_UNITS, form->length / FORM_UNIT, 0);
    if (index != ring->taken)
        note_form(ring, CALLS_FORM_INDEX, index, ring->taken);
    if (number != ring->qp->number)
        note_form(ring, CALLS_FORM_NUMBER, number, 0);
}

/* --- fences */

static bool brings_data(const struct send_wqe *work)
{
    enum request_class class = request_kind(work)->class;
    return class == REQUEST_READ || class == REQUEST_ATOMIC;
}

static bool overlap(const struct ibv_sge *one, const struct ibv_sge *other)
{
    return one->addr < other->addr + other->length && other->addr < one->addr + one->length;
}

static bool sends_result_of(const struct send_wqe *work, const struct send_wqe *earlier)
{
    for (unsigned i = 0; i < work->sge_count; i++)
        for (unsigned j = 0; j < earlier->sge_count; j++)
            if (overlap(&work->sge[i], &earlier->sge[j]))
                return true;
    return false;
}

static void judge_fence(const struct send_ring *ring, const struct send_wqe *work)
{
    const struct send_queue *queue = engine_queue(qp_engine(ring->qp));
    if (work->flags & IBV_SEND_FENCE || brings_data(work) || send_wqe_is_scripted(work))
        return;
    for (uint32_t at = queue->head; at != queue->tail; at++) {
        const struct send_wqe *earlier = send_queue_at(queue, at);
        if (!send_wqe_is_scripted(earlier) && brings_data(earlier) && sends_result_of(work, earlier))
            return note_form(ring, CALLS_FORM_UNFENCED, (uint16_t)earlier->id, 0);
    }
}

void judge_work(const struct send_ring *ring, const struct form *form, const struct send_wqe *work, bool fits)
{
    int opcode = form_opcode(form);
    bool known = opcode >= 0 && post_is_legal(ring->qp, (unsigned)opcode);
    if (fits && known)
        return judge_fence(ring, work);
    if (fits)
        return;
    if (known)
        note_form(ring, CALLS_FORM_UNITS, form->length / FORM_UNIT, 0);
    else
        note_form(ring, CALLS_FORM_OPERATION, form_operation(form), 0);
}

/* --- completion queues */

void judge_consumed(struct cq_memory *memory)
{
    enum { COUNT_BITS = 0xffffff, HALF = 1 << 23 };
    uint32_t consumed =
        __builtin_bswap32(atomic_load_explicit(&memory->record[RECORD_CONSUMED], memory_order_acquire)) & COUNT_BITS;
    lock_take(&memory->cq->lock);
    uint32_t produced = memory->produced & COUNT_BITS, ahead = (consumed - produced) & COUNT_BITS;
    lock_release(&memory->cq->lock);
    if (!ahead || ahead >= HALF || memory->told_ahead)
        return;
    memory->told_ahead = true;
    note_mistake((struct calls_form_mistake){CALLS_FORM_CONSUMED, &memory->cq->ibv, 0, consumed, produced});
}

unsigned judge_take(struct calls_form_mistake taken[JUDGE_NOTES])
{
    unsigned number = count;
    memcpy(taken, noted, number * sizeof *noted);
    count = 0;
    return number;
}
