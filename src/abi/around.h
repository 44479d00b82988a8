/* The frame of every wrapper of the interface around the call: it names the call for the line of a refusal
 * (events/refusal.h) and keeps errno in step. AROUND_ has a macro for each word of base/result.h.
 *
 * A wrapped function is not a cancellation point (base/uncancelled.h), in any system call, unless it waits for
 * events. */
#pragma once

#include "base/result.h"
#include "base/uncancelled.h"
#include "events/refusal.h"

#define AROUND(outcome, name, call)                                                                                    \
    __extension__({                                                                                                    \
        const struct refusal before_it = refusal_begin(name);                                                          \
        const int errno_before = errno, cancellable = uncancelled_begin();                                             \
        __typeof__(call) result = (call);                                                                              \
        uncancelled_end(cancellable);                                                                                  \
        const bool failed = RESULT_FAILED_##outcome(result);                                                           \
        errno = failed ? RESULT_ERROR_##outcome(result) : errno_before;                                                \
        refusal_end(&before_it, failed ? errno : 0);                                                                   \
        result;                                                                                                        \
    })

#define AROUND_code(name, call) AROUND(code, name, call)
#define AROUND_minus(name, call) AROUND(minus, name, call)
#define AROUND_negative(name, call) AROUND(negative, name, call)
#define AROUND_pointer(name, call) AROUND(pointer, name, call)
#define AROUND_plain(name, call) (call)

/* EAGAIN and EINTR are answers, not refusals. */
#define AROUND_event(name, call)                                                                                       \
    __extension__({                                                                                                    \
        const struct refusal before_it = refusal_begin(name);                                                          \
        const int errno_before = errno, result = (call);                                                               \
        errno = result < 0 ? errno : errno_before;                                                                     \
        refusal_end(&before_it, 0);                                                                                    \
        result;                                                                                                        \
    })

#define AROUND_nothing(name, call)                                                                                     \
    __extension__({                                                                                                    \
        const struct refusal before_it = refusal_begin(name);                                                          \
        const int errno_before = errno, cancellable = uncancelled_begin();                                             \
        (call);                                                                                                        \
        uncancelled_end(cancellable);                                                                                  \
        errno = errno_before;                                                                                          \
        refusal_end(&before_it, 0);                                                                                    \
    })
