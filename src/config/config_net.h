/* The properties of a device that come from its network interface. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "config/device_state.h"

/* Gives the device the interface's MAC and MTU, and its GIDs in the kernel's order. The device stays unchanged, with a
 * complaint, if there is no such interface or the kernel could not be asked. */
void config_network(struct device *, const char *interface);

/* Asks the kernel for the interface of this name in the calling thread's network namespace; `found` says whether there
 * is one. False: the kernel could not be asked. The caller holds no lock, as this may wait for a process that changes
 * interfaces. */
bool config_read_interface(struct interface *, const char *name);
