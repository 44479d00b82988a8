/* Only in the library that programs load: the command and the tests, which have all else of it inside, obey no script.
 */
#include <errno.h>

#include "inject/call_layer.h"
#include "inject/slow_layer.h"
#include "script/rules.h"
#include "script/script.h"

/* Runs after abi/bottom.c has set the bottom of calls, before all else; leaves errno, as check/start.c does. */
__attribute__((constructor(102))) static void start(void)
{
    int before = errno;
    rules_changed = call_layer_change;
    script_start();
    slow_layer_start();
    errno = before;
}
