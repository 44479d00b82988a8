/* Of the library that programs load alone: the command and the tests, which have all else of it inside, obey no script.
 */
#include "inject/call_layer.h"
#include "script/meet.h"
#include "script/script.h"

/* Behind the calls that lie at the bottom (abi/bottom.c), before all else. */
__attribute__((constructor(102))) static void start(void)
{
    meet_changed = call_layer_change;
    script_start();
}
