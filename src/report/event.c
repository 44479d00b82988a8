#include "report/event.h"

#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "config/device_state.h"
#include "events/events.h"
#include "gsi/cm/cm.h"
#include "process/port_state.h"
#include "process/progress.h"
#include "runtime/qpns.h"
#include "script/parse.h"
#include "verbs/ask/qp_inquiry.h"
#include "verbs/object/async.h"
#include "verbs/object/context.h"
#include "verbs/qp/qp_error.h"

static void fail_on_port(void *object, void *context)
{
    struct qp *qp = qp_of_endpoint(object);
    if (qp->path.port != *(const uint32_t *)context)
        return;
    lock_take(&qp->lock);
    qp_inquiry_settle(qp);
    qp_fail(qp, IBV_EVENT_DEVICE_FATAL);
    lock_release(&qp->lock);
}

/* Does the effects of the event besides its report. False: nothing has happened. */
static bool happens(struct process *process, const struct device *device, enum ibv_event_type type)
{
    switch (type) {
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_PORT_ACTIVE:
        return port_state_set(process, device, type == IBV_EVENT_PORT_ERR) && device_now(device)->up;
    case IBV_EVENT_DEVICE_FATAL:
        qpns_each(process->numbers, fail_on_port, &(uint32_t){port_state_bit(device)});
        progress_guests(process, fail_on_port, &(uint32_t){port_state_bit(device)});
        return true;
    default:
        return true;
    }
}

unsigned event_happen(struct process *process, const struct device *device, const struct script_raised *raised)
{
    lock_assert_held(&process->progress);
    unsigned told = happens(process, device, raised->type) ? async_raise_port(process, device, raised->type) : 0;
    if (!strcmp(raised->name, "device-removal"))
        cm_remove_device(process, device->index);
    if (!strcmp(raised->name, "addr-change"))
        cm_change_address(process, device->index);
    return told;
}

/* process->control guards the contexts. It comes before the progress lock, which the caller holds: it is only tried.
 */
static void raise_event(struct process *process, const struct script_raised *raised, const char *name, FILE *out)
{
    const struct device *device = config_find(name);
    if (!mutex_try(&process->control)) {
        fputs("{\"busy\":true}\n", out);
        return;
    }
    unsigned told = device ? event_happen(process, device, raised) : 0;
    mutex_release(&process->control);
    fprintf(out, "{\"contexts\":%u}\n", told);
}

bool event_fail_devices(struct process *process)
{
    if (!mutex_try(&process->control))
        return false;
    lock_take(&process->progress);
    CONFIG_EACH (device)
        if (happens(process, device, IBV_EVENT_DEVICE_FATAL))
            async_raise_port(process, device, IBV_EVENT_DEVICE_FATAL);
    lock_release(&process->progress);
    mutex_release(&process->control);
    return true;
}

/* --- the interface below the device */

/* Raises no event of a port that a person has put down (`softverbs event`): the port stays down. */
static void tell_changes(struct process *process, const struct device *device, const struct device_state *before,
                         const struct device_state *now)
{
    bool held = port_state_down(process, port_state_bit(device));
    if (before->up != now->up)
        event_say(device->index, EVENT_INTERFACE_STATE, now->up, 0, "%s on \"%s\" is %s", device->name,
                  device->interface, now->up ? "up" : "down");
    if (before->up && !now->up && !held)
        async_raise_port(process, device, IBV_EVENT_PORT_ERR);
    if (memcmp(before->gids, now->gids, sizeof now->gids)) {
        event_say(device->index, EVENT_INTERFACE_ADDRESSES, 0, 0, "%s on \"%s\"", device->name, device->interface);
        async_raise_port(process, device, IBV_EVENT_GID_CHANGE);
    }
    if (!before->up && now->up && !held)
        async_raise_port(process, device, IBV_EVENT_PORT_ACTIVE);
}

bool event_follow(struct process *process, const struct device *device, const struct device_state *next)
{
    const struct device_state *before = device_now(device);
    if (!mutex_try(&process->control))
        return false;
    lock_take(&process->progress);
    if (config_publish(device->index, next))
        tell_changes(process, device, before, next);
    lock_release(&process->progress);
    mutex_release(&process->control);
    return true;
}

/* The request is a line of the language of scripts. */
void event_answer(struct process *process, const char *request, FILE *out)
{
    struct script_fault fault;
    lock_assert_held(&process->progress);
    struct script *script = calloc(1, sizeof *script);
    const struct script_rule *rule = script ? script->rules : NULL;
    if (script && script_parse(request, script, &fault) && script->count == 1 && rule->raised && !*rule->raised->of)
        raise_event(process, rule->raised, rule->on.device, out);
    else
        fputs("{\"unknown\":true}\n", out);
    free(script);
}
