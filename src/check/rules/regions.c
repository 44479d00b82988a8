/* Memory stays registered and mapped while work uses it. */
#include "check/findings/finding.h"
#include "check/shadow/flight.h"
#include "check/shadow/memory.h"

static bool uses(const struct wqe *wqe, uint32_t lkey)
{
    for (unsigned at = 0; at < wqe->count; at++)
        if (wqe->sges[at].lkey == lkey && wqe->sges[at].length)
            return true;
    return false;
}

static const struct wqe *find_user(const struct wqe_queue *queue, uint32_t lkey, uint64_t until)
{
    for (uint32_t at = 0; at < queue->count && wqe_at(queue, at)->begun < until; at++)
        if (!(wqe_at(queue, at)->flags & (WQE_INLINE | WQE_UNSURE)) && uses(wqe_at(queue, at), lkey))
            return wqe_at(queue, at);
    return NULL;
}

/* Work of a queue pair that has failed is flushed without touching memory. */
static const struct wqe *find_user_of(const struct shadow *owner, uint32_t lkey, uint64_t until)
{
    if (owner->kind == SHADOW_SRQ)
        return find_user(&owner->srq.receives, lkey, until);
    if (owner->kind != SHADOW_QP || owner->qp.state == IBV_QPS_ERR || owner->qp.state == IBV_QPS_SQE)
        return NULL;
    const struct wqe *wqe = find_user(&owner->qp.sends, lkey, until);
    return wqe ? wqe : find_user(&owner->qp.receives, lkey, until);
}

static void report_use(const struct shadow *mr, const struct shadow *owner, const struct wqe *wqe)
{
    finding_add(HOOKS_ABOUT(RULE_REGION_IN_USE, mr, .posted = wqe->posted),
                "A memory region of %llu bytes is deregistered while a %s of %s uses it (wr_id %llu)",
                (unsigned long long)mr->mr.length, wqe_name(wqe), SHADOW_NAMED(owner), (unsigned long long)wqe->wr_id);
}

/* Reports work that uses the region. Called once the library has deregistered it, which it may refuse. */
static void destroyed(struct shadow *mr, uint64_t began)
{
    const struct shadow *owner;
    if (mr->kind != SHADOW_MR || !rule_chosen.rules[RULE_REGION_IN_USE])
        return;
    uint32_t lkey = (uint32_t)mr->by_number.key;
    TAILQ_FOREACH (owner, shadow_all(), siblings) {
        const struct wqe *wqe = find_user_of(owner, lkey, began);
        if (wqe) {
            report_use(mr, owner, wqe);
            return;
        }
    }
}

/* Returns true if the region lacks LOCAL_WRITE. Memory without an address in this process is not looked at. */
static bool is_read_only(const struct ibv_sge *sge)
{
    const struct shadow *mr = sge->length ? shadow_find_number(SHADOW_MR, sge->lkey) : NULL;
    return mr && mr->mr.address && !(mr->mr.access & IBV_ACCESS_LOCAL_WRITE);
}

static void judge_access(struct shadow *owner, struct wqe *wqe)
{
    unsigned at = 0;
    while (at < wqe->count && !(wqe->flags & WQE_WRITES && is_read_only(&wqe->sges[at])))
        at++;
    if (at == wqe->count)
        return;
    finding_add(HOOKS_ABOUT(RULE_LOCAL_WRITE_MISSING, owner, .posted = wqe->posted),
                "A %s of %s is to write memory whose region (lkey 0x%x) was registered without "
                "IBV_ACCESS_LOCAL_WRITE (wr_id %llu)",
                wqe_name(wqe), SHADOW_NAMED(owner), wqe->sges[at].lkey, (unsigned long long)wqe->wr_id);
}

static bool is_registered(const struct wqe *wqe)
{
    for (unsigned at = 0; at < wqe->count; at++)
        if (wqe->sges[at].length && !memory_at(&wqe->sges[at]))
            return false;
    return true;
}

/* Reports work whose buffer is lost; `how`: "is freed", for example. */
static void report_loss(const struct shadow *owner, const struct wqe *wqe, enum rule rule, const char *how)
{
    finding_add(HOOKS_ABOUT(rule, owner, .posted = wqe->posted),
                "The buffer of a %s of %s %s before its completion was polled (wr_id %llu, %u bytes from 0x%llx)",
                wqe_name(wqe), SHADOW_NAMED(owner), how, (unsigned long long)wqe->wr_id, wqe->length,
                (unsigned long long)wqe->sges[0].addr);
}

/* WQE_UNREADABLE: the buffer could be read at the post, but not when rules/send_buffer.c tried again just now. */
static void completed(struct shadow *qp, struct wqe *wqe, const struct calls_completion *completion)
{
    if (wqe->flags & WQE_UNREADABLE && is_registered(wqe))
        report_loss(qp, wqe, RULE_BUFFER_UNMAPPED, "was unmapped");
}

/* Reports a mapping that Linux does not pin. With a profile such a region is refused, and is not seen here. */
static void registered(struct shadow *mr)
{
    char name[VMA_NAME];
    if (!rule_chosen.rules[RULE_FILE_NOT_PINNED] || !mr->mr.address ||
        !vma_is_pinned_to_write((unsigned)mr->mr.access) || !vma_is_written_back(mr->mr.address, mr->mr.length, name))
        return;
    finding_add(HOOKS_ABOUT(RULE_FILE_NOT_PINNED, mr),
                "A memory region of %llu bytes that a device may write is a shared mapping of the file %s",
                (unsigned long long)mr->mr.length, name);
}

static void unmapped(struct shadow *owner, const struct wqe *wqe)
{
    report_loss(owner, wqe, RULE_BUFFER_UNMAPPED, "is unmapped");
}

static void freed(struct shadow *owner, const struct wqe *wqe)
{
    report_loss(owner, wqe, RULE_BUFFER_FREED, "is freed");
}

const struct hooks rules_regions = {.posted = judge_access,
                                    .memory = {.freed = freed, .unmapped = unmapped, .registered = registered},
                                    .destroyed = destroyed,
                                    .completed = completed};
