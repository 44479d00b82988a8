/* Of the library that programs load alone: the command and the tests, which have all else of it inside, obey no script.
 */
#include <errno.h>

#include "inject/call_layer.h"
#include "inject/slow_layer.h"
#include "script/meet.h"
#include "script/script.h"

/* Behind the calls that lie at the bottom (abi/bottom.c), before all else; errno is as it was, as in check/start.c. */
__attribute__((constructor(102))) static void start(void)
{
    int before = errno;
    meet_changed = call_layer_change;
    script_start();
    slow_layer_start();
    errno = before;
}
