#include "gsi/served.h"

#include <string.h>

#include "gsi/gsi.h"
#include "process/port.h"

/* The group's name is the interface's, with which no GID of a multicast group begins. */
static void name_port(const struct device *device, uint8_t name[16])
{
    _Static_assert(sizeof device->interface == 16, "as long as a GID");
    memset(name, 0, 16);
    memcpy(name, device->interface, strlen(device->interface));
}

/* If the list of groups is full, other processes do not find this one, but it still answers what the kernel gives
 * it. */
int served_open(struct process *process, const struct device *device)
{
    uint8_t name[16];
    uint32_t bit = 1u << device->index;
    int error = port_open(process, device);
    if (error || !device->interface[0] || atomic_fetch_or(&process_objects(process)->gsi->served, bit) & bit)
        return error;
    name_port(device, name);
    node_join(process->node, name);
    return 0;
}

bool served_here(const struct process *process, const struct device *device)
{
    return atomic_load(&process_objects(process)->gsi->served) & 1u << device->index;
}

void served_each(struct process *process, const struct device *device, void (*visit)(struct peer *, void *context),
                 void *context)
{
    uint8_t name[16];
    name_port(device, name);
    node_members(process->node, name, visit, context);
}
