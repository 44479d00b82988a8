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

static void compare(struct shadow *qp, const struct wqe *wqe)
{
    uint64_t hash;
    if (!memory_hash(wqe, &hash) || hash == wqe->hash || memory_may_be_written(wqe))
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
    if (wqe->flags & WQE_HASHED && !(wqe->flags & WQE_WRITES))
        compare(qp, wqe);
}

const struct hooks rules_send_buffer = {.posted = posted, .completed = completed};
