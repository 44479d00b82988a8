#include "verbs/disturb/disturb.h"

#include <stddef.h>

#include "adverse/adverse.h"
#include "config/config.h"
#include "ipc/place/admin_port.h"
#include "process/port_state.h"
#include "verbs/object/async.h"
#include "verbs/object/process_objects.h"

static const nanos port_late = 100 * NANOS_MILLISECOND, /* the longest, unless times are scaled */
    at_once = 1;

static struct delayed_ports *delayed_ports_of(struct process *process)
{
    lock_assert_held(&process->control);
    return &process_objects(process)->delayed;
}

/* A user may have brought the port up meanwhile, with its event, or taken it down for the whole host. */
static void bring_up(struct process *process, const struct device *device)
{
    bool stays_down = admin_port_is_down(node_path(process->node), device->name);
    if (!stays_down && port_state_set(process, device, false) && device_now(device)->up)
        async_raise_port(process, device, IBV_EVENT_PORT_ACTIVE);
}

/* Returns when the port becomes active. The first look names the time. */
static nanos look_at_port(struct process *process, const struct device *device, nanos now)
{
    struct delayed_ports *delayed = delayed_ports_of(process);
    nanos *late = &delayed->ports[device->index].late, *at = &delayed->ports[device->index].at;
    if (*late)
        *at = now + *late;
    *late = 0;
    if (!*at || *at > now)
        return *at ? *at : NANOS_NEVER;
    *at = 0;
    bring_up(process, device);
    return NANOS_NEVER;
}

static void look_at_ports(struct process *process, nanos now)
{
    CONFIG_EACH (device) {
        nanos at = look_at_port(process, device, now);
        if (at != NANOS_NEVER)
            schedule_by(&process->schedule, &process_objects(process)->delayed.timer, at);
    }
}

/* The caller holds process->progress, which is taken after control: so control is only tried. */
static void ports_expired(struct timer *timer, nanos now)
{
    struct process *process = (struct process *)((char *)timer - offsetof(struct process_objects, delayed.timer.timer));
    lock_assert_held(&process->progress);
    if (!mutex_try(&process->control)) {
        schedule_by(&process->schedule, &process_objects(process)->delayed.timer, now + NANOS_MILLISECOND);
        return;
    }
    look_at_ports(process, now);
    mutex_release(&process->control);
}

/* Returns true if the process opens the device for the first time, and notes that. */
static bool is_first(struct delayed_ports *delayed, uint32_t bit)
{
    bool first = !(delayed->begun & bit);
    if (!delayed->begun)
        schedule_initialize_timer(&delayed->timer, ports_expired);
    delayed->begun |= bit;
    return first;
}

void delayed_port_begin(struct context *context)
{
    struct process *process = context->process;
    const struct device *device = context->device;
    struct delayed_ports *delayed = delayed_ports_of(process);
    uint32_t bit = port_state_bit(device);
    if (!adverse_shows(ADVERSE_LATE_PORT) || !is_first(delayed, bit) || port_state_down(process, bit))
        return;
    struct adverse_source dice = adverse_source();
    nanos late = adverse_delay(&dice, ADVERSE_LATE_PORT, port_late);
    if (!late)
        return;
    delayed->ports[device->index].late = late;
    port_state_set(process, device, true);
    schedule_by(&process->schedule, &delayed->timer, at_once);
}
