/* Only the library that programs load has this file: the command and the tests contain the others, and imitate no
 * device. */
#include "imitate/imitate.h"

/* Runs after abi/bottom.c has set the bottom of calls, before all else. */
__attribute__((constructor(102))) static void start(void)
{
    imitate_begin();
}
