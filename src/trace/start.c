/* Only the library that programs load has this file: the command and the tests contain the others, and are not traced.
 */
#include "base/settings.h"
#include "diag/log.h"
#include "ring/trace_control.h"
#include "trace/call_layer.h"

/* Runs after the calls of the bottom layer are set (abi/bottom.c), before all else. */
__attribute__((constructor(102))) static void start(void)
{
    const char *path = setting_environment(SETTING_TRACE_RING), *calls = setting_environment(SETTING_TRACE_CALLS);
    trace_layer_change = call_layer_trace;
    if (!path || !*path)
        return;
    log_start();
    const char *wrong = trace_begin(path, calls ? calls : "");
    if (wrong)
        log_write(LOG_WARN, "no trace is written: %s", wrong);
}
