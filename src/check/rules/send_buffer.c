/* The buffer of a SEND, WRITE or atomic stays as it is until its completion was polled. */
#include "check/findings/finding.h"
#include "check/flight.h"
#include "check/memory.h"

static void posted(struct shadow *owner, struct wqe *wqe)
{
    if (!finding_choice.rules[RULE_SEND_BUFFER_CHANGED] || wqe->flags & (WQE_WRITES | WQE_INLINE) || !wqe->length)
        return;
    if (memory_hash(wqe, &wqe->hash))
        wqe->flags |= WQE_HASHED;
}

/* What the device has written into the buffers of sends in flight is no change of the program's. */
static void forgive(struct shadow *qp, const struct wqe *written)
{
    struct wqe_queue *sends = &qp->qp.sends;
    for (uint32_t at = 0; at < sends->count; at++)
        if (wqe_at(sends, at)->flags & WQE_HASHED && memory_overlaps(wqe_at(sends, at), written))
            wqe_at(sends, at)->flags &= (uint8_t)~WQE_HASHED;
}

static bool is_written_by(const struct wqe_queue *queue, const struct wqe *wqe)
{
    for (uint32_t at = 0; at < queue->count; at++)
        if (wqe_at(queue, at)->flags & WQE_WRITES && memory_overlaps(wqe_at(queue, at), wqe))
            return true;
    return false;
}

/* The device may have written what the program has not polled yet, for any queue. */
static bool may_be_written(const struct wqe *wqe)
{
    const struct shadow *shadow;
    TAILQ_FOREACH (shadow, shadow_all(), siblings) {
        if (shadow->kind == SHADOW_SRQ && is_written_by(&shadow->srq, wqe))
            return true;
        if (shadow->kind == SHADOW_QP &&
            (is_written_by(&shadow->qp.receives, wqe) || is_written_by(&shadow->qp.sends, wqe)))
            return true;
    }
    return false;
}

static void compare(struct shadow *qp, const struct wqe *wqe)
{
    uint64_t hash;
    if (!memory_hash(wqe, &hash) || hash == wqe->hash || may_be_written(wqe))
        return;
    finding_add(&(struct finding_about){.rule = RULE_SEND_BUFFER_CHANGED,
                                        .kind = "qp",
                                        .number = qp->number,
                                        .posted = wqe->posted,
                                        .created = &qp->created},
                "The buffer of a %s of queue pair 0x%x changed between its post and the poll of its completion "
                "(wr_id %llu, %u bytes from 0x%llx)",
                wqe_name(wqe), qp->number, (unsigned long long)wqe->wr_id, wqe->length,
                (unsigned long long)wqe->sges[0].addr);
}

static void completed(struct shadow *qp, struct wqe *wqe, const struct hooks_completion *completion)
{
    if (wqe->flags & WQE_WRITES)
        forgive(qp, wqe);
    if (wqe->flags & WQE_HASHED && !(wqe->flags & WQE_WRITES))
        compare(qp, wqe);
}

const struct hooks rules_send_buffer = {.posted = posted, .completed = completed};
