/* The common part of the functions that see calls which create objects. */
#pragma once

#include <errno.h>

#include "calls/subject.h"
#include "check/hooks_call.h"

/* Makes the shadow of an object that the library has made; NULL: no memory. The lock is held afterwards. */
struct shadow *created_enter(enum shadow_kind, const void *handle, const struct ibv_context *, struct calls_subject);

/* The thread domain of a parent domain, or NULL. Under the lock. */
const void *created_td_of(const struct ibv_pd *);

/* The object that a call has made. NULL: the call was refused, and the hooks of the rules are called. */
#define CREATED(made, name)                                                                                            \
    __extension__({                                                                                                    \
        __auto_type created_seen = made;                                                                               \
        if (!created_seen)                                                                                             \
            hooks_refused(#name, errno);                                                                               \
        created_seen;                                                                                                  \
    })

/* Like CREATED, for a call that returns 0, an error number, or a number below 0 with errno set; returns that result. */
int created_result(int result, const char *call);
