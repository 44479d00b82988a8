#include "cm/ports.h"

#include <errno.h>

static bool same_address(const struct cm_address *a, const struct cm_address *b)
{
    return a->family == b->family && a->scope == b->scope && a->service == b->service && !memcmp(a->gid, b->gid, 16);
}

static int conflict(const struct port_claim *other, const struct port_claim *wanted, bool reuse)
{
    const struct cm_address *a = &other->source, *b = &wanted->source;
    if (reuse && other->reuse && wanted->reuse)
        return 0;
    if (other->only_family && wanted->only_family && a->family != b->family)
        return 0;
    if (cm_is_any(a) || cm_is_any(b))
        return EADDRNOTAVAIL;
    return same_address(a, b) ? EADDRINUSE : 0;
}

int ports_conflict(const struct port_claim *const *others, unsigned count, const struct port_claim *wanted, bool reuse)
{
    int error = 0;
    for (unsigned i = 0; i < count && !error; i++)
        error = conflict(others[i], wanted, reuse);
    return error;
}

static bool are_different(const struct cm_address *a, const struct cm_address *b)
{
    return !cm_is_any(a) && !cm_is_any(b) && !same_address(a, b);
}

bool ports_are_distinct(const struct port_claim *const *others, unsigned count, const struct port_claim *wanted)
{
    for (unsigned i = 0; i < count; i++)
        if (others[i]->destination.port == wanted->destination.port &&
            !are_different(&others[i]->source, &wanted->source) &&
            !are_different(&others[i]->destination, &wanted->destination))
            return false;
    return true;
}
