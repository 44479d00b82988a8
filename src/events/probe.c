#include "events/probe.h"

#include "base/likely.h"

#ifdef HAS_PROBES
cold void event_probe(uint32_t number, enum event event, uint64_t a, uint64_t b)
{
    event_probe_here(number, event, a, b);
}
#endif
