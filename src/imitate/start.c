/* This file is in the library that programs load only: the command and the tests contain the other files, and imitate
 * no device. */
#include "imitate/imitate.h"

/* Runs after abi/bottom.c has set the bottom of calls, before all else. */
__attribute__((constructor(102))) static void start(void)
{
    imitate_begin();
}
