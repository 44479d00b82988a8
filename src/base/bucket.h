/* A token bucket, which limits how often others may ask for something: the time at which it is full again. */
#pragma once

#include <stdbool.h>

#include "base/nanos.h"

struct bucket {
    nanos due; /* when no token is missing any more; 0 at first */
};

/* Takes a token and returns true if there is one. A token is added every `each` nanoseconds, and at most `burst` of
 * them are kept. The caller ensures that there is one call at a time. */
static inline bool bucket_take(struct bucket *bucket, nanos now, nanos each, unsigned burst)
{
    if (bucket->due < now)
        bucket->due = now;
    if (bucket->due - now > each * (burst - 1))
        return false;
    bucket->due += each;
    return true;
}
