/* The memory that the kernel lets a process pin. */
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check/hooks.h"

/* Returns true unless the process may lock all memory (CAP_IPC_LOCK). */
static bool is_limited(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
    return !syscall(SYS_capget, &header, data) && !(data[0].effective & 1u << CAP_IPC_LOCK);
}

/* Returns the limit in bytes; UINT64_MAX: there is none. */
static uint64_t find_limit(void)
{
    struct rlimit limit;
    bool known = !getrlimit(RLIMIT_MEMLOCK, &limit) && limit.rlim_cur != RLIM_INFINITY;
    return known && is_limited() ? limit.rlim_cur : UINT64_MAX;
}

/* The least that mlx5 takes for the queues of an object. */
static uint64_t bytes_of(const struct shadow *shadow)
{
    enum { ENTRY = 64, SEND = 64, PIECE = 16 };
    const struct ibv_qp_cap *cap = &shadow->qp.cap;
    if (shadow->kind == SHADOW_CQ)
        return (uint64_t)shadow->cq.entries * ENTRY;
    if (shadow->kind != SHADOW_QP)
        return 0;
    uint64_t receives = shadow->qp.srq ? 0 : (uint64_t)cap->max_recv_wr * cap->max_recv_sge;
    return (uint64_t)cap->max_send_wr * SEND + receives * PIECE;
}

/* The least that mlx5 takes for all queues of this process. */
static uint64_t find_queues(void)
{
    uint64_t bytes = 0;
    const struct shadow *shadow;
    TAILQ_FOREACH (shadow, shadow_all(), siblings)
        bytes += shadow->process == getpid() ? bytes_of(shadow) : 0;
    return bytes;
}

/* Reports an object with which regions and queues together exceed the limit, where the regions alone do not. */
static void judge_sum(const struct shadow *shadow, uint64_t limit)
{
    uint64_t pinned = shadow_pinned(), queues = find_queues();
    if (pinned + queues <= limit)
        return;
    finding_add(HOOKS_ABOUT(RULE_MEMLOCK_EXCEEDED, shadow),
                "The %s makes the registered memory (%llu KiB) and the queues (at least %llu KiB with mlx5) more than "
                "RLIMIT_MEMLOCK, which is %llu KiB",
                SHADOW_NAMED(shadow), (unsigned long long)pinned >> 10, (unsigned long long)queues >> 10,
                (unsigned long long)limit >> 10);
}

static void registered(struct shadow *mr)
{
    uint64_t pinned = shadow_pinned(), limit = mr->mr.address ? find_limit() : UINT64_MAX;
    if (limit == UINT64_MAX)
        return;
    if (pinned <= limit) {
        judge_sum(mr, limit);
        return;
    }
    finding_add(HOOKS_ABOUT(RULE_MEMLOCK_EXCEEDED, mr),
                "A memory region of %llu bytes makes the registered memory %llu KiB, and RLIMIT_MEMLOCK is %llu KiB",
                (unsigned long long)mr->mr.length, (unsigned long long)pinned >> 10, (unsigned long long)limit >> 10);
}

static void queued(struct shadow *shadow)
{
    uint64_t limit = find_limit();
    if (limit != UINT64_MAX && shadow_pinned() <= limit)
        judge_sum(shadow, limit);
}

const struct hooks rules_limits = {.memory = {.registered = registered, .queued = queued}};
