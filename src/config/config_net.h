/* What a device takes from the network interface that its user has put it on. */
#ifndef CONFIG_CONFIG_NET_H
#define CONFIG_CONFIG_NET_H

#include <stdbool.h>
#include <stdint.h>

#include "config/device.h"

/* Gives the device the interface's address, GIDs in the kernel's order and MTU. False, with a complaint: there is no
 * such interface; the device stays as it was. */
bool config_network(struct device *, const char *interface);

/* The largest InfiniBand MTU that fits below IPv6, UDP and the longest transport headers into packets of this size, as
 * the kernel reckons. */
uint32_t config_fitting_mtu(int interface_mtu);

#endif
