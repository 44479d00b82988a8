/* The common part of the functions around creating calls. */
#ifndef CHECK_MADE_H
#define CHECK_MADE_H

#include <errno.h>

#include "calls/subject.h"
#include "check/hooks.h"

/* Makes the shadow of an object that the library has made; NULL: no memory. The lock is held afterwards. */
struct shadow *made_enter(enum shadow_kind, const void *handle, const struct ibv_context *, struct calls_subject);

/* The thread domain of a parent domain, or NULL. Under the lock. */
const void *made_td_of(const struct ibv_pd *);

/* The object that a call has made; NULL: the call was refused, and the hooks of rules are called. */
#define MADE_SEEN(made, name)                                                                                          \
    __extension__({                                                                                                    \
        __auto_type made_seen = made;                                                                                  \
        if (!made_seen)                                                                                                \
            hooks_refused(#name, errno);                                                                               \
        made_seen;                                                                                                     \
    })

/* MADE_SEEN for a call whose result is 0 or errno. */
int made_result(int result, const char *call);

#endif
