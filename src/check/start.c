/* Only the library that programs load has this file: the command and the tests contain the others, and are not checked.
 */
#include <errno.h>

#include "check/check.h"

/* Runs after abi/bottom.c has set the bottom of calls, before all else. Keeps errno, which programs may read without
 * having set it. */
static void __attribute__((constructor(102))) start(void)
{
    int before = errno;
    check_begin();
    errno = before;
}
