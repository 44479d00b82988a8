#include "abi/assembly.h"

#include <errno.h>

#include "runtime/numbers.h"
#include "verbs/cm.h"
#include "verbs/event.h"
#include "verbs/inherit.h"
#include "verbs/mad.h"
#include "verbs/memory.h"
#include "verbs/multicast.h"
#include "verbs/report.h"
#include "verbs/served.h"
#include "verbs/steering.h"
#include "verbs/traffic_report.h"

static int begin(struct process *process)
{
    process->keys = memory_create();
    process->srqs = numbers_create();
    multicast_begin(process);
    int error = mad_begin(process);
    if (!error)
        error = steering_create(process);
    return process->keys && process->srqs ? error : ENOMEM;
}

static void stop(struct process *process)
{
    cm_destroy(process);
    if (process->totals)
        traffic_report_end(process);
}

static void end_parts(struct process *process)
{
    memory_destroy(process->keys);
    steering_destroy(process->steering);
    numbers_destroy(process->srqs);
    mad_end(process);
}

const struct process_parts assembly_parts = {.begin = begin,
                                             .open_device = served_open,
                                             .leave = cm_say_goodbye,
                                             .write_counters = traffic_report_end,
                                             .stop = stop,
                                             .end = end_parts,
                                             .lock = cm_lock,
                                             .unlock = cm_unlock,
                                             .inherit = inherit_process,
                                             .fail_devices = event_fail_devices,
                                             .answer = report_write};
