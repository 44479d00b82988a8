/* Of the library that programs load alone: the command and the tests, which have all else of it inside, are no other
 * device's. */
#include "imitate/imitate.h"

/* Behind the calls that lie at the bottom (abi/bottom.c), before all else. */
__attribute__((constructor(102))) static void start(void)
{
    imitate_begin();
}
