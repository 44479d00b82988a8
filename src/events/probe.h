/* USDT probes: each event of events.def is a probe of its name, of the provider "softverbs", for bpftrace, perf and
 * gdb. A probe is a nop and a note (.note.stapsdt) that says where its three arguments are: the number of the object,
 * and the fields `a` and `b`. Without <sys/sdt.h> (Debian: systemtap-sdt-dev) there are no probes. */
#pragma once

#include "events/kinds.h"

#if __has_include(<sys/sdt.h>)
#define HAS_PROBES 1
#include <sys/sdt.h>

/* A probe at this place. The arguments should be at hand: a value that is only computed for this costs instructions.
 * The event is a constant, so that one probe remains. */
__attribute__((always_inline)) static inline void event_probe_here(uint32_t number, enum event event, uint64_t a,
                                                                   uint64_t b)
{
    switch (event) {
#define PROBE(name)                                                                                                    \
    case EVENT_##name:                                                                                                 \
        DTRACE_PROBE3(softverbs, name, number, a, b);                                                                  \
        break;
#define PACKETS(name, ...) PROBE(name)
#define COUNTED(name, ...) PROBE(name)
#define REASONS(name, ...) PROBE(name)
#define REFUSALS(name, ...) PROBE(name)
#define SCRIPTED(name, ...) PROBE(name)
#define MESSAGES(name, ...) PROBE(name)
#define EVENT(name, ...) PROBE(name)
#include "events/events.def"
#undef PROBE
    default:
        break;
    }
}

/* event_probe_here as a function: for an event that the compiler does not know, or that is rare. */
void event_probe(uint32_t number, enum event, uint64_t a, uint64_t b);
#else
static inline void event_probe_here(uint32_t number, enum event event, uint64_t a, uint64_t b)
{
}

static inline void event_probe(uint32_t number, enum event event, uint64_t a, uint64_t b)
{
}
#endif
