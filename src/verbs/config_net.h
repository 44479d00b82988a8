/* What a device takes from the network interface that its user has put it on. */
#ifndef VERBS_CONFIG_NET_H
#define VERBS_CONFIG_NET_H

#include "verbs/config.h"

/* Gives the device the interface's address, GIDs in the kernel's order and MTU. False, logged: there is no such
 * interface; the device stays as it was. */
bool config_network(struct device *, const char *interface);

#endif
