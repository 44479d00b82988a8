/* The result of a function of the interface and errno agree: a call that fails sets errno, also where its manual page
 * has only a return value, and a call that succeeds leaves it. Programs print strerror(errno) for every call, and some
 * pass on -errno. A word says how the function reports failure, as in abi/versions/symbols.list and calls/verbs.def:
 *
 *   code      an error number instead of 0
 *   minus     a number below 0, and errno
 *   event     the same of a call that waits for events: it is a cancellation point
 *   negative  an error number below 0 instead of a count
 *   pointer   NULL, and errno
 *   nothing   it returns nothing, and does not fail
 *   plain     it does not fail, and makes no system call */
#pragma once

#include <errno.h>

/* Whether this result is a failure. */
#define RESULT_FAILED_code(result) ((result) != 0)
#define RESULT_FAILED_minus(result) ((result) < 0)
#define RESULT_FAILED_event(result) ((result) < 0)
#define RESULT_FAILED_negative(result) ((result) < 0)
#define RESULT_FAILED_pointer(result) (!(result))
#define RESULT_FAILED_plain(result) false

/* The error number of a result that is a failure. */
#define RESULT_ERROR_code(result) (result)
#define RESULT_ERROR_minus(result) errno
#define RESULT_ERROR_negative(result) (-(int)(result))
#define RESULT_ERROR_pointer(result) errno

/* Returns from the function with this error number, unless the function does not fail. */
#define RESULT_REFUSE_code(error) return errno = (error)
#define RESULT_REFUSE_minus(error) return errno = (error), -1
#define RESULT_REFUSE_event(error) return errno = (error), -1
#define RESULT_REFUSE_negative(error) return -(errno = (error))
#define RESULT_REFUSE_pointer(error) return errno = (error), NULL
#define RESULT_REFUSE_nothing(error) return (void)(error)
#define RESULT_REFUSE_plain(error) (void)(error)

/* Sets errno to this error number and returns it. The functions of the data path, which programs reach without a
 * wrapper (abi/around.h), end with it when they fail. */
static inline int result_failure(int error)
{
    return errno = error;
}
