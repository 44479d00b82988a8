/* With --check=pages: a program touches no buffer of a receive, READ or atomic before the completion. */
#include "check/findings/finding.h"
#include "check/hooks.h"
#include "check/memory.h"
#include "check/outside/pages.h"

/* The last of the files that look at buffers at the post. */
static void protect_targets(struct shadow *owner, struct wqe *wqe)
{
    for (unsigned at = 0; rule_chosen.pages && wqe->flags & WQE_WRITES && at < wqe->count; at++)
        if (pages_protect(memory_at(&wqe->sges[at]), wqe->sges[at].length, wqe->begun))
            wqe->flags |= WQE_PROTECTED;
}

/* As the return address of a call there would be. */
static const void *behind(const void *instruction)
{
    return (const char *)instruction + 1;
}

static void tell_touch(struct shadow *qp, struct wqe *wqe, const struct hooks_completion *completion)
{
    const void *toucher = wqe->flags & WQE_PROTECTED ? pages_release(wqe->begun) : NULL;
    if (!toucher || place_is_own(toucher))
        return;
    finding_add(&(struct finding_about){.rule = RULE_TOUCHED_EARLY,
                                        .kind = shadow_kind_name(qp->kind),
                                        .number = qp->number,
                                        .posted = wqe->posted,
                                        .found = behind(toucher),
                                        .created = &qp->created},
                "The program has read or written the buffer of a %s of queue pair 0x%x before the poll of its "
                "completion (wr_id %llu, %u bytes from 0x%llx)",
                wqe_name(wqe), qp->number, (unsigned long long)wqe->wr_id, wqe->length,
                (unsigned long long)wqe->sges[0].addr);
}

const struct hooks rules_touches = {.posted = protect_targets, .completed = tell_touch};
