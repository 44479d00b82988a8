/* How often something may be done that others can ask for: a token bucket, as the time at which the next token is due.
 */
#ifndef BASE_BUCKET_H
#define BASE_BUCKET_H

#include <stdbool.h>

#include "base/nanos.h"

struct bucket {
    nanos due; /* 0 at first: full */
};

/* May it be done now? One token comes `each` so many nanoseconds, and at most `burst` of them are kept. The caller sees
 * to it that there is one at a time. */
static inline bool bucket_take(struct bucket *bucket, nanos now, nanos each, unsigned burst)
{
    if (bucket->due < now)
        bucket->due = now;
    if (bucket->due - now > each * (burst - 1))
        return false;
    bucket->due += each;
    return true;
}

#endif
