#include "check/findings/deferred.h"

#include <errno.h>
#include <stddef.h>

#include "base/uncancelled.h"

_Thread_local struct deferred *deferred_pending __attribute__((tls_model("initial-exec")));

void deferred_add(struct deferred *deferred)
{
    struct deferred **last = &deferred_pending;
    while (*last)
        last = &(*last)->next;
    deferred->next = NULL;
    *last = deferred;
}

void deferred_run(void)
{
    int error = errno, before = uncancelled_begin();
    struct deferred *deferred;
    while ((deferred = deferred_pending)) {
        deferred_pending = deferred->next;
        deferred->run(deferred);
    }
    uncancelled_end(before);
    errno = error;
}
