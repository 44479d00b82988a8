/* Work in flight writes no bytes that other work in flight reads or writes. */
#include "check/hooks.h"
#include "check/shadow/memory.h"

static void posted(struct shadow *owner, struct wqe *wqe)
{
    if (!rule_chosen.rules[RULE_BUFFERS_OVERLAP] || wqe->flags & WQE_INLINE || !wqe->length)
        return;
    const struct wqe *other = memory_find_conflict(owner, wqe);
    if (!other)
        return;
    finding_add(HOOKS_ABOUT(RULE_BUFFERS_OVERLAP, owner, .posted = wqe->posted),
                "A %s of %s has bytes in common with a %s that is in flight (wr_id %llu and %llu): one of them is "
                "written, so the outcome is open",
                wqe_name(wqe), SHADOW_NAMED(owner), wqe_name(other), (unsigned long long)wqe->wr_id,
                (unsigned long long)other->wr_id);
}

const struct hooks rules_overlaps = {.posted = posted};
