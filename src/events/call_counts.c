#include "events/call_counts.h"

#include <stdatomic.h>

/* All numbers of diag.def are below REASONS_END. */
enum { REASONS_END = 1000, REFUSALS_KINDS = EVENTS_BEFORE_SCRIPTED - EVENTS_BEFORE_REFUSALS };

#define REASON(number, name, sentence) _Static_assert((number) < REASONS_END, "has no place: " #name);
#include "diag/diag.def"
#undef REASON

static struct {
    atomic_uint by_reason[REFUSALS_KINDS][REASONS_END];
    atomic_uint scripted[EVENTS_BEFORE_MESSAGES - EVENTS_BEFORE_SCRIPTED];
} counts;

static bool is_refusal(enum event event)
{
    return event >= EVENTS_BEFORE_REFUSALS && event < EVENTS_BEFORE_SCRIPTED;
}

static atomic_uint *counter_of(enum event event, unsigned reason)
{
    return is_refusal(event) ? &counts.by_reason[event - EVENTS_BEFORE_REFUSALS][reason < REASONS_END ? reason : 0]
                             : &counts.scripted[event - EVENTS_BEFORE_SCRIPTED];
}

void call_note(enum event event, unsigned reason)
{
    atomic_fetch_add_explicit(counter_of(event, reason), 1, memory_order_relaxed);
}

uint64_t call_count_refused(enum event event, unsigned reason)
{
    return atomic_load_explicit(counter_of(event, reason), memory_order_relaxed);
}

uint64_t call_count_scripted(enum event event)
{
    return atomic_load_explicit(counter_of(event, 0), memory_order_relaxed);
}

void call_counts_forget(void)
{
    for (int kind = 0; kind < REFUSALS_KINDS; kind++)
        for (int reason = 0; reason < REASONS_END; reason++)
            atomic_store_explicit(&counts.by_reason[kind][reason], 0, memory_order_relaxed);
    for (int event = EVENTS_BEFORE_SCRIPTED; event < EVENTS_BEFORE_MESSAGES; event++)
        atomic_store_explicit(counter_of(event, 0), 0, memory_order_relaxed);
}
