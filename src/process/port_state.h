/* The state of each device's port. A user takes it down and up again (softverbs event), for all processes of the host.
 */
#pragma once

#include "base/likely.h"
#include "process/process.h"

/* The device's bit in process->ports_down. */
static inline uint32_t port_state_bit(const struct device *device)
{
    return 1u << device->index;
}

/* Returns true if one of these bits is down. */
static inline bool port_state_down(const struct process *process, uint32_t bits)
{
    return unlikely(atomic_load_explicit(&process->ports_down, memory_order_relaxed) & bits);
}

/* Learns whether a user has taken the device's port down, for a context that is being opened. */
void port_state_learn(struct process *, const struct device *);

/* Opens or closes what the process publishes; call it when the conditions for that have changed. Thread-safe. */
void port_state_publish(struct process *);

/* Takes the port down or up. False: it was in that state already. Thread-safe. */
bool port_state_set(struct process *, const struct device *, bool down);
