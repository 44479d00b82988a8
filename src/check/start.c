/* Of the library that programs load alone: the command and the tests, which have all else of it inside, are not
 * checked.
 */
#include "check/check.h"

/* Behind the calls that lie at the bottom (abi/bottom.c), before all else. */
static void __attribute__((constructor(102))) start(void)
{
    check_begin();
}
