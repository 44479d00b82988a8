/* The devices that this process sees, and their limits: defaults, a file, environment variables. */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "config/device.h"

/* Reads the configuration once; later calls return the same `*count` devices, valid for ever. Thread-safe. Where the
 * configuration has a mistake, the default holds. */
const struct device *config_devices(unsigned *count);

/* The device of this index, valid for ever; NULL: no device has it. Reads the configuration as config_devices
 * does. */
const struct device *config_device(unsigned index);

/* The device of this name; NULL: no device has it. */
const struct device *config_find(const char *name);

/* Visits all devices in the order of their indices. */
#define CONFIG_EACH(device)                                                                                            \
    for (const struct device *device = config_device(0); device; device = config_device(device->index + 1))

/* Returns true if the link layer of all devices is InfiniBand. */
bool config_is_infiniband(void);

/* Returns true if the devices have network interfaces, and so the IP addresses by which librdmacm finds them. A port of
 * InfiniBand would have one of IPoIB. An EFA has none, and Linux's connection manager does not know it. */
bool config_has_interfaces(void);

/* The first mistake in the configuration, or NULL. */
const char *config_problem(void);

/* Reports the mistakes to the user, once, unless the log is off. */
void config_warn(void);

/* Makes device_now return a copy of this state for the device of this index. False: no memory. One caller at a time:
 * the helper thread, or any thread before it exists. */
bool config_publish(unsigned device, const struct device_state *);
