#include "verbs/object/lost_pairs.h"

#include "base/static_lock.h"

struct lost_pair {
    enum reason reason;
    uint32_t from, to;
};

LOCK_STATIC(remembering, LOCK_INNERMOST);
static struct lost_pair pairs[LOST_PAIRS]; /* a ring; reason 0: never written; under `remembering` */
static unsigned written;                   /* how many were ever written; under `remembering` */

static bool is_remembered(const struct lost_pair *pair)
{
    lock_assert_held(&remembering);
    for (unsigned i = 0; i < LOST_PAIRS; i++)
        if (pairs[i].reason == pair->reason && pairs[i].from == pair->from && pairs[i].to == pair->to)
            return true;
    return false;
}

bool lost_pairs_is_first(enum reason reason, uint32_t from, uint32_t to)
{
    const struct lost_pair pair = {reason, from, to};
    lock_take(&remembering);
    bool first = !is_remembered(&pair);
    if (first)
        pairs[written++ % LOST_PAIRS] = pair;
    lock_release(&remembering);
    return first;
}
