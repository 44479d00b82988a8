/* A program touches no buffer of a receive, READ or atomic before the completion. --check=pages shows that, and so do
 * the program's sanitizers, which get to know the buffers here. */
#include "base/own_code.h"
#include "check/hooks.h"
#include "check/outside/pages.h"
#include "check/outside/sanitizers.h"
#include "check/shadow/memory.h"

/* Returns true if each element names memory by its real address, so that it is found again without the region. */
static bool is_plain(const struct wqe *wqe)
{
    for (unsigned at = 0; at < wqe->count; at++)
        if (memory_at(&wqe->sges[at]) != (const char *)(uintptr_t)wqe->sges[at].addr)
            return false;
    return true;
}

static void hide(struct wqe *wqe)
{
    wqe->flags |= WQE_HIDDEN;
    for (unsigned at = 0; at < wqe->count; at++)
        sanitizers_hide((const void *)(uintptr_t)wqe->sges[at].addr, wqe->sges[at].length);
}

/* For ThreadSanitizer each send also precedes by the serial of its queue pair, which receives of the peer follow. */
static void precede(struct shadow *owner, struct wqe *wqe)
{
    if (!sanitizers_are_here)
        return;
    if (sanitizers_poison() && wqe->flags & WQE_WRITES && wqe->length && is_plain(wqe))
        hide(wqe);
    sanitizers_precede(wqe->begun);
    if (!(wqe->flags & WQE_RECEIVE))
        sanitizers_precede(owner->serial);
}

static void follow(struct shadow *qp, struct wqe *wqe)
{
    if (!sanitizers_are_here)
        return;
    wqe_show(wqe);
    sanitizers_follow(wqe->begun);
    const struct shadow *peer = wqe->flags & WQE_RECEIVE ? shadow_find_number(SHADOW_QP, qp->qp.connection.peer) : NULL;
    if (peer)
        sanitizers_follow(peer->serial);
}

/* Protects buffers after all other rules have looked at them: rules.def has this file last. */
static void protect_targets(struct shadow *owner, struct wqe *wqe)
{
    for (unsigned at = 0; rule_chosen.pages && wqe->flags & WQE_WRITES && at < wqe->count; at++)
        if (pages_protect(memory_at(&wqe->sges[at]), wqe->sges[at].length, wqe->begun))
            wqe->flags |= WQE_PROTECTED;
    precede(owner, wqe);
}

/* The instruction's address as if it were the return address of a call. */
static const void *return_address_of(const void *instruction)
{
    return (const char *)instruction + 1;
}

static void tell_touch(struct shadow *qp, struct wqe *wqe, const struct calls_completion *completion)
{
    follow(qp, wqe);
    const void *toucher = wqe->flags & WQE_PROTECTED ? pages_release(wqe->begun) : NULL;
    if (!toucher || own_code_has(toucher))
        return;
    finding_add(HOOKS_ABOUT(RULE_TOUCHED_EARLY, qp, .posted = wqe->posted, .found = return_address_of(toucher)),
                "The program has read or written the buffer of a %s of queue pair 0x%x before the poll of its "
                "completion (wr_id %llu, %u bytes from 0x%llx)",
                wqe_name(wqe), qp->number, (unsigned long long)wqe->wr_id, wqe->length,
                (unsigned long long)wqe->sges[0].addr);
}

const struct hooks rules_touches = {.posted = protect_targets, .completed = tell_touch};
