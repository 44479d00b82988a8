/* The result of a function of the interface and errno agree: errno is set by a call that fails, also where its manual
 * page has only a return value, and keeps its value over a call that succeeds. Programs print strerror(errno) for every
 * call, and some pass on -errno. The word behind RESULT_ says how the function reports failure; they are those of
 * abi/versions/symbols.list. The functions that programs call through abi/ are wrapped in one of these there. The
 * functions of the data path, which programs reach without a wrapper, leave with result_failure when they fail.
 *
 * A wrapped function is no cancellation point (base/uncancelled.h), in any system call, but for those that wait for
 * events: RESULT_event. */
#ifndef BASE_RESULT_H
#define BASE_RESULT_H

#include <errno.h>

#include "base/uncancelled.h"

/* 0 or an error number. */
#define RESULT_code(call)                                                                                              \
    __extension__({                                                                                                    \
        const int errno_before = errno, cancellable = uncancelled_begin(), answer = (call);                            \
        uncancelled_end(cancellable);                                                                                  \
        errno = answer ? answer : errno_before;                                                                        \
        answer;                                                                                                        \
    })

/* Failure answers below 0 and has set errno. */
#define RESULT_event(call)                                                                                             \
    __extension__({                                                                                                    \
        const int errno_before = errno, answer = (call);                                                               \
        if (answer >= 0)                                                                                               \
            errno = errno_before;                                                                                      \
        answer;                                                                                                        \
    })

#define RESULT_minus(call)                                                                                             \
    __extension__({                                                                                                    \
        const int cancellable = uncancelled_begin(), minus = RESULT_event(call);                                       \
        uncancelled_end(cancellable);                                                                                  \
        minus;                                                                                                         \
    })

/* A count, or an error number below 0. */
#define RESULT_negative(call)                                                                                          \
    __extension__({                                                                                                    \
        const int errno_before = errno, cancellable = uncancelled_begin();                                             \
        const long answer = (call);                                                                                    \
        uncancelled_end(cancellable);                                                                                  \
        errno = answer < 0 ? -(int)answer : errno_before;                                                              \
        answer;                                                                                                        \
    })

/* Failure answers NULL and has set errno. */
#define RESULT_pointer(call)                                                                                           \
    __extension__({                                                                                                    \
        const int errno_before = errno, cancellable = uncancelled_begin();                                             \
        __typeof__(call) answer = (call);                                                                              \
        uncancelled_end(cancellable);                                                                                  \
        if (answer)                                                                                                    \
            errno = errno_before;                                                                                      \
        answer;                                                                                                        \
    })

/* Does not fail, and returns nothing. */
#define RESULT_nothing(call)                                                                                           \
    __extension__({                                                                                                    \
        const int errno_before = errno, cancellable = uncancelled_begin();                                             \
        (call);                                                                                                        \
        uncancelled_end(cancellable);                                                                                  \
        errno = errno_before;                                                                                          \
        (void)0;                                                                                                       \
    })

/* Reads what is there: it neither fails nor makes a system call. */
#define RESULT_plain(call) (call)

/* Only when `error` is one; answers it. */
static inline int result_failure(int error)
{
    return errno = error;
}

#endif
