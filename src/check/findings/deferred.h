/* Work that hooks leave until the shadow's lock is given back, since it may wait: files, symbols. */
#pragma once

#include "base/likely.h"

struct deferred {
    struct deferred *next;
    void (*run)(struct deferred *); /* frees it */
};

extern _Thread_local struct deferred *deferred_pending __attribute__((tls_model("initial-exec")));

/* The calling thread runs it when it gives the lock back, after what it has left before. Any lock may be held. */
void deferred_add(struct deferred *);

/* Runs what this thread has left; errno stays. Under no lock of the checker. */
void deferred_run(void);

static inline void deferred_flush(void)
{
    if (unlikely(deferred_pending ))
        deferred_run();
}
