/* The properties that a device takes from the network interface that its user has put it on. */
#ifndef CONFIG_CONFIG_NET_H
#define CONFIG_CONFIG_NET_H

#include <stdbool.h>
#include <stdint.h>

#include "config/device_state.h"

/* Gives the device the interface's address, GIDs in the kernel's order and MTU. False, with a complaint: there is no
 * such interface, or the kernel could not be asked; the device stays as it was. */
bool config_network(struct device *, const char *interface);

/* Asks the kernel for the interface of this name, of the network namespace of the calling thread; it may not be found.
 * False: the kernel could not be asked. May wait for another process that is changing interfaces; so not under a
 * lock. */
bool config_read_interface(struct interface *, const char *name);

#endif
