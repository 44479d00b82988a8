/* The common part of the functions around creating calls. */
#ifndef CHECK_MADE_H
#define CHECK_MADE_H

#include <errno.h>

#include "calls/subject.h"
#include "check/hooks.h"

/* The shadow of an object that the library has made; NULL: there is no memory. The lock is held behind it. */
struct shadow *made_enter(enum shadow_kind, const void *handle, const struct ibv_context *, struct calls_subject);

/* The thread domain of a parent domain; NULL: none. Under the lock. */
const void *made_td_of(const struct ibv_pd *);

/* The object that a call has made; NULL: it was refused, and the hooks of rules are called. */
#define MADE_SEEN(made, name)                                                                                          \
    __extension__({                                                                                                    \
        __auto_type made_seen = made;                                                                                  \
        if (!made_seen)                                                                                                \
            hooks_refused(#name, errno);                                                                               \
        made_seen;                                                                                                     \
    })

/* The same for a call whose result is 0 or errno. */
int made_result(int result, const char *call);

#endif
