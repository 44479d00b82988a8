/* The devices that this process sees, and their limits: defaults, a file, environment variables. */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "config/device.h"

/* Reads the configuration once; later calls return the same. *count devices, valid for ever. Thread-safe.
 * Where the configuration has a mistake the default stands. */
const struct device *config_devices(unsigned *count);

/* The link layer of all of them. */
bool config_is_infiniband(void);

/* The first mistake in it, or NULL. */
const char *config_problem(void);

/* Reports the mistakes to the user, once, unless the log is off. */
void config_warn(void);

/* From now on device_now answers a copy of this for the device of this index. False: no memory. One caller at a time:
 * the helper thread, or before there is one. */
bool config_publish(unsigned device, const struct device_state *);

/* Returns true if this GID belongs to some softverbs device of this host, under any configuration of its process. Of
 * devices on network interfaces only those of this process are known. */
bool config_local_gid(const union ibv_gid *);

#endif
