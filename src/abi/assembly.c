#include "abi/assembly.h"

#include <errno.h>

#include "events/call_counts.h"
#include "events/process_events.h"
#include "gsi/cm/cm.h"
#include "gsi/mad.h"
#include "gsi/served.h"
#include "mlx5/queues/addresses.h"
#include "mlx5/queues/queues.h"
#include "mlx5/queues/registers.h"
#include "report/event.h"
#include "report/hangs.h"
#include "report/layout.h"
#include "report/report.h"
#include "report/traffic_report.h"
#include "runtime/qpns.h"
#include "verbs/ask/qp_inquiry.h"
#include "verbs/context/inherit.h"
#include "verbs/kinds/ethernet/steering.h"
#include "verbs/kinds/kinds.h"
#include "verbs/kinds/xrc/xrc_substitute.h"
#include "verbs/memory/past_regions.h"
#include "verbs/memory/rkeys.h"
#include "verbs/send/multicast.h"

static int begin(struct process *process)
{
    kinds_begin();
    hangs_begin();
    layout_begin(process);
    process_objects(process)->keys = rkeys_create();
    process_objects(process)->srqs = qpns_create(NODE_NUMBERS);
    multicast_begin(process);
    xrc_substitutes_begin(process);
    int error = mad_begin(process);
    if (!error)
        error = steering_create(process);
    return process_objects(process)->keys && process_objects(process)->srqs ? error : ENOMEM;
}

static void stop(struct process *process)
{
    addresses_end(process);
    xrc_substitutes_end(process);
    if (process->traffic.totals)
        traffic_report_end(process);
    cm_destroy(process);
}

static void end_parts(struct process *process)
{
    layout_end(process);
    rkeys_destroy(process_objects(process)->keys);
    steering_destroy(process_objects(process)->steering);
    qpns_destroy(process_objects(process)->srqs);
    mad_end(process);
}

static void inherit(struct process *process)
{
    layout_end(process);
    call_counts_forget();
    process_events_forget();
    past_regions_forget();
    qp_inquiry_inherit();
    registers_inherit();
    inherit_process(process);
    cm_inherit(process);
}

static void write_last(struct process *process)
{
    traffic_report_end(process);
    report_stories_end(process);
}

const struct process_parts assembly_parts = {.size = sizeof(struct process_objects),
                                             .begin = begin,
                                             .open_device = served_open,
                                             .leave = cm_say_goodbye,
                                             .write_counters = write_last,
                                             .stop = stop,
                                             .end = end_parts,
                                             .lock = cm_lock,
                                             .unlock = cm_unlock,
                                             .inherit = inherit,
                                             .fail_devices = event_fail_devices,
                                             .follow = event_follow,
                                             .report = report_write,
                                             .departed = xrc_substitutes_departed,
                                             .look_for_hangs = hangs_look,
                                             .queues = {queues_look, queues_tell, queues_close, queues_open, registers_descriptor}};
