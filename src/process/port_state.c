#include "process/port_state.h"

#include "ipc/place/admin_port.h"
#include "link/published.h"

/* Closes the publications while any port is down: peers' one-sided accesses end. */
void port_state_publish(struct process *process)
{
    bool open = process_publishes(process) && !atomic_load(&process->ports_down);
    published_open(node_published(process->node), open);
}

void port_state_learn(struct process *process, const struct device *device)
{
    if (admin_port_is_down(node_path(process->node), device->name))
        atomic_fetch_or(&process->ports_down, port_state_bit(device));
    port_state_publish(process);
}

bool port_state_set(struct process *process, const struct device *device, bool down)
{
    uint32_t bit = port_state_bit(device);
    uint32_t before = down ? atomic_fetch_or(&process->ports_down, bit) : atomic_fetch_and(&process->ports_down, ~bit);
    port_state_publish(process);
    return (before & bit) != (down ? bit : 0);
}
