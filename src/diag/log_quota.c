#include "diag/log_quota.h"

#include <stdatomic.h>

#include "base/read_clock.h"

static struct quota {
    atomic_uint second, lines, omitted;
    const char *_Atomic name; /* NULL: a reason */
} quotas[LOG_QUOTA_KINDS];

static atomic_bool any_omitted;

static unsigned this_second(void)
{
    return (unsigned)(read_clock(CLOCK_MONOTONIC_COARSE) / NANOS_SECOND);
}

bool log_quota_admits(unsigned kind, const char *name, unsigned most)
{
    struct quota *quota = &quotas[kind % LOG_QUOTA_KINDS];
    unsigned now = this_second(), second = atomic_load(&quota->second);
    if (second != now && atomic_compare_exchange_strong(&quota->second, &second, now))
        atomic_store(&quota->lines, 0);
    if (atomic_fetch_add(&quota->lines, 1) < most)
        return true;
    atomic_store(&quota->name, name);
    atomic_fetch_add(&quota->omitted, 1);
    atomic_store(&any_omitted, true);
    return false;
}

bool log_quota_is_used_up(unsigned kind, unsigned most)
{
    struct quota *quota = &quotas[kind % LOG_QUOTA_KINDS];
    if (atomic_load_explicit(&quota->lines, memory_order_relaxed) < most ||
        atomic_load(&quota->second) != this_second())
        return false;
    atomic_fetch_add(&quota->omitted, 1);
    atomic_store(&any_omitted, true);
    return true;
}

void log_quota_settle(bool now, void (*tell)(unsigned kind, const char *name, unsigned omitted))
{
    static atomic_uint settled; /* the second of the last search: a storm of lines needs no search for each line */
    if (!atomic_load_explicit(&any_omitted, memory_order_relaxed))
        return;
    unsigned second = this_second();
    if (atomic_exchange(&settled, second) == second && !now)
        return;
    atomic_store(&any_omitted, false);
    for (unsigned i = 0; i < LOG_QUOTA_KINDS; i++) {
        if (!atomic_load_explicit(&quotas[i].omitted, memory_order_relaxed))
            continue;
        if (!now && atomic_load(&quotas[i].second) == second) {
            atomic_store(&any_omitted, true);
            continue;
        }
        unsigned omitted = atomic_exchange(&quotas[i].omitted, 0);
        if (omitted)
            tell(i, atomic_load(&quotas[i].name), omitted);
    }
}
