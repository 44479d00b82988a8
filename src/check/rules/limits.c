/* The memory that the kernel lets a process pin. */
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check/hooks.h"

/* Returns true if the process has a limit: one that may lock all memory has none. */
static bool is_limited(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
    return !syscall(SYS_capget, &header, data) && !(data[0].effective & 1u << CAP_IPC_LOCK);
}

static void registered(struct shadow *mr)
{
    struct rlimit limit;
    uint64_t pinned = shadow_pinned();
    if (getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == RLIM_INFINITY || pinned <= limit.rlim_cur ||
        !mr->mr.address || !is_limited())
        return;
    finding_add(&(struct finding_about){.rule = RULE_MEMLOCK_EXCEEDED,
                                        .kind = shadow_kind_name(mr->kind),
                                        .number = mr->number,
                                        .created = &mr->created},
                "A memory region of %llu bytes makes the registered memory %llu KiB, and RLIMIT_MEMLOCK is %llu KiB",
                (unsigned long long)mr->mr.length, (unsigned long long)pinned >> 10,
                (unsigned long long)limit.rlim_cur >> 10);
}

const struct hooks rules_limits = {.memory.registered = registered};
