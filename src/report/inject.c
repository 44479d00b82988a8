#include "report/inject.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "process/port_state.h"
#include "report/event.h"
#include "report/object_types.h"
#include "runtime/qpns.h"
#include "script/live/requests.h"
#include "script/rules.h"
#include "tap/delay.h"
#include "verbs/disturb/disturb.h"
#include "verbs/life/qp_modify.h"
#include "verbs/object/context.h"
#include "verbs/queue/cq.h"

/* --- objects that exist obey rules that come later */

static void prepare_qp(void *object, void *context)
{
    const bool *fresh = context;
    qp_meet_rules(object, *fresh);
}

static void prepare_packets(struct process *process)
{
    bool fresh = traffic_script(&process->traffic, process->node, &process->schedule, &process->forked);
    port_state_publish(process); /* from now on peers access no memory here by themselves */
    qpns_each(process->numbers, prepare_qp, &fresh);
}

static void prepare(struct process *process)
{
    if (rules_wants(SCRIPT_packet) || rules_wants(SCRIPT_message))
        prepare_packets(process);
    EACH_OBJECT (process, OBJECT_CQ, object)
        cq_disturb(container_of(object, struct cq, object));
}

/* --- devices that are open meet the new rules: those from the place `from` on */

static bool is_open(const struct process *process, const struct device *device)
{
    const struct context *context;
    LIST_FOREACH (context, &process_objects(process)->contexts, siblings)
        if (context->device == device)
            return true;
    return false;
}

static void meet_open(struct process *process, unsigned from)
{
    CONFIG_EACH (device) {
        if (!rules_wants(SCRIPT_open) || !is_open(process, device))
            continue;
        struct script_verdict verdict = rules_apply((struct script_event){
            .call = SCRIPT_open, .subject = {.kind = "device"}, .device = device->name, .from = from});
        if (verdict.raised)
            event_happen(process, device, verdict.raised);
    }
}

/* --- requests */

/* process->control guards the lists of objects. It comes before the progress lock that the caller holds, so it is only
 * tried. */
static void add_rules(struct process *process, struct script *more, FILE *out)
{
    script_choose(more, program_invocation_short_name);
    if (!mutex_try(&process->control)) {
        requests_answer(out, EBUSY);
        return;
    }
    unsigned place = rules_next_place();
    int error = rules_add(more);
    if (!error) {
        prepare(process);
        meet_open(process, place);
    }
    mutex_release(&process->control);
    requests_answer(out, error);
}

static void read_rules(struct process *process, const char *text, FILE *out)
{
    struct script *more = requests_read(text, out);
    if (more)
        add_rules(process, more, out);
    free(more);
}

void inject_answer(struct process *process, const char *request, FILE *out)
{
    static const char rules[] = "rules ";
    lock_assert_held(&process->progress);
    if (!strncmp(request, rules, sizeof rules - 1))
        return read_rules(process, request + sizeof rules - 1, out);
    if (!strcmp(request, "clear")) {
        rules_clear();
        delay_release_held(traffic_taps(&process->traffic)); /* no rule is left that would */
    }
    requests_list(out);
}
