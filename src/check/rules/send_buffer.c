/* The buffer of a SEND, WRITE or atomic stays as it is until its completion was polled. */
#include <pthread.h>

#include "check/findings/finding.h"
#include "check/shadow/flight.h"
#include "check/shadow/memory.h"

static bool is_same_buffer(const struct wqe *one, const struct wqe *other)
{
    return one->count == 1 && other->count == 1 && one->length == other->length &&
           one->sges[0].addr == other->sges[0].addr && one->sges[0].lkey == other->sges[0].lkey;
}

/* Looks whether the program has filled the buffer of the previous work anew, if this thread posted that from the same
 * address, and it had room to be inline. If so, reports it, and not again at its completion. True: `wqe->hash` is
 * known. */
static bool compare_previous(struct shadow *qp, struct wqe *wqe)
{
    const struct wqe_queue *sends = &qp->qp.sends;
    struct wqe *last = qp->kind == SHADOW_QP && sends->count ? wqe_at(sends, sends->count - 1) : NULL;
    uint64_t hash;
    if (!last || !(last->flags & WQE_HASHED) || last->thread != (uintptr_t)pthread_self() ||
        last->length > qp->qp.cap.max_inline_data || last->sges[0].addr != wqe->sges[0].addr ||
        !memory_hash(last, &hash))
        return false;
    wqe->hash = hash;
    if (hash == last->hash || memory_may_be_written(last))
        return is_same_buffer(last, wqe);
    last->flags &= (uint16_t)~WQE_HASHED;
    finding_add(HOOKS_ABOUT(RULE_INLINE_MISSING, qp, .posted = last->posted),
                "The buffer of a %s of queue pair 0x%x is filled again for the next post, before its completion (wr_id "
                "%llu, %u bytes, max_inline_data %u)",
                wqe_name(last), qp->number, (unsigned long long)last->wr_id, last->length, qp->qp.cap.max_inline_data);
    return is_same_buffer(last, wqe);
}

static void posted(struct shadow *owner, struct wqe *wqe)
{
    bool known = false;
    if (rule_chosen.rules[RULE_INLINE_MISSING] && !(wqe->flags & WQE_RECEIVE) && wqe->length)
        known = compare_previous(owner, wqe);
    bool wanted = rule_chosen.rules[RULE_SEND_BUFFER_CHANGED] || rule_chosen.rules[RULE_INLINE_MISSING];
    if (!wanted || wqe->flags & (WQE_WRITES | WQE_INLINE) || !wqe->length)
        return;
    if (known || memory_hash(wqe, &wqe->hash))
        wqe->flags |= WQE_HASHED;
}

static void compare(struct shadow *qp, struct wqe *wqe)
{
    uint64_t hash;
    if (!memory_hash(wqe, &hash)) {
        wqe->flags |= WQE_UNREADABLE;
        return;
    }
    if (hash == wqe->hash || memory_may_be_written(wqe))
        return;
    finding_add(HOOKS_ABOUT(RULE_SEND_BUFFER_CHANGED, qp, .posted = wqe->posted),
                "The buffer of a %s of queue pair 0x%x changed between its post and the poll of its completion "
                "(wr_id %llu, %u bytes from 0x%llx)",
                wqe_name(wqe), qp->number, (unsigned long long)wqe->wr_id, wqe->length,
                (unsigned long long)wqe->sges[0].addr);
}

static void completed(struct shadow *qp, struct wqe *wqe, const struct calls_completion *completion)
{
    if (wqe->flags & WQE_HASHED && !(wqe->flags & WQE_WRITES))
        compare(qp, wqe);
}

const struct hooks rules_send_buffer = {.posted = posted, .completed = completed};
