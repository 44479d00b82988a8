/* Of the library that programs load alone: the command and the tests, which have all else of it inside, are not
 * checked.
 */
#include <errno.h>

#include "check/check.h"

/* Behind the calls that lie at the bottom (abi/bottom.c), before all else. Programs that look at errno without having
 * set it find what they found without the library. */
static void __attribute__((constructor(102))) start(void)
{
    int before = errno;
    check_begin();
    errno = before;
}
