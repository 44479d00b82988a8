/* Only in the library that programs load: the command and the tests, which have all else of it inside, imitate no
 * device. */
#include "imitate/imitate.h"

/* Runs after abi/bottom.c has set the bottom of calls, before all else. */
__attribute__((constructor(102))) static void start(void)
{
    imitate_begin();
}
