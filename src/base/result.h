/* The result of a function of the interface and errno agree: a call that fails sets errno, also where its manual page
 * has only a return value, and a call that succeeds leaves it. Programs print strerror(errno) for every call, and some
 * pass on -errno. The word after RESULT_ is how the function reports failure, as in abi/versions/symbols.list. In abi/
 * one of these wraps each function that programs call. The functions of the data path, which programs call without a
 * wrapper, leave with result_failure when they fail.
 *
 * A wrapped function is not a cancellation point (base/uncancelled.h), in any system call, unless it waits for events:
 * RESULT_event. */
#ifndef BASE_RESULT_H
#define BASE_RESULT_H

#include <errno.h>

#include "base/uncancelled.h"

/* The function returns 0 or an error number. */
#define RESULT_code(call)                                                                                              \
    __extension__({                                                                                                    \
        const int errno_before = errno, cancellable = uncancelled_begin(), answer = (call);                            \
        uncancelled_end(cancellable);                                                                                  \
        errno = answer ? answer : errno_before;                                                                        \
        answer;                                                                                                        \
    })

/* The function returns a number below 0 and has set errno when it fails. */
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

/* The function returns a count, or an error number below 0. */
#define RESULT_negative(call)                                                                                          \
    __extension__({                                                                                                    \
        const int errno_before = errno, cancellable = uncancelled_begin();                                             \
        const long answer = (call);                                                                                    \
        uncancelled_end(cancellable);                                                                                  \
        errno = answer < 0 ? -(int)answer : errno_before;                                                              \
        answer;                                                                                                        \
    })

/* The function returns NULL and has set errno when it fails. */
#define RESULT_pointer(call)                                                                                           \
    __extension__({                                                                                                    \
        const int errno_before = errno, cancellable = uncancelled_begin();                                             \
        __typeof__(call) answer = (call);                                                                              \
        uncancelled_end(cancellable);                                                                                  \
        if (answer)                                                                                                    \
            errno = errno_before;                                                                                      \
        answer;                                                                                                        \
    })

/* The function does not fail, and returns nothing. */
#define RESULT_nothing(call)                                                                                           \
    __extension__({                                                                                                    \
        const int errno_before = errno, cancellable = uncancelled_begin();                                             \
        (call);                                                                                                        \
        uncancelled_end(cancellable);                                                                                  \
        errno = errno_before;                                                                                          \
        (void)0;                                                                                                       \
    })

/* The function neither fails nor makes a system call. */
#define RESULT_plain(call) (call)

/* Sets errno and returns it; `error` is not 0. */
static inline int result_failure(int error)
{
    return errno = error;
}

#endif
