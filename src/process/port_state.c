#include "process/port_state.h"

#include "ipc/admin_port.h"

void port_state_learn(struct process *process, const struct device *device)
{
    if (admin_port_is_down(node_path(process->node), device->name))
        atomic_fetch_or(&process->ports_down, port_state_bit(device));
}

bool port_state_set(struct process *process, const struct device *device, bool down)
{
    uint32_t bit = port_state_bit(device);
    uint32_t before = down ? atomic_fetch_or(&process->ports_down, bit) : atomic_fetch_and(&process->ports_down, ~bit);
    return (before & bit) != (down ? bit : 0);
}
