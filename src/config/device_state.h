/* The state of a device that follows its interface, and how a new state is published. */
#pragma once

#include "config/device.h"

enum { INTERFACE_ADDRESSES = 256 }; /* the most addresses of an interface that are read */

/* An interface, as the kernel describes it. */
struct interface {
    bool found, up;
    unsigned index;
    uint32_t mtu; /* bytes of an IP packet */
    uint8_t mac[6];
    unsigned address_count;
    union ibv_gid addresses[INTERFACE_ADDRESSES]; /* in the form of GIDs: first IPv4, then IPv6 */
};

/* The largest InfiniBand MTU that, with IPv6, UDP and the longest transport headers, fits into packets of this size, as
 * the kernel reckons. */
uint32_t config_fitting_mtu(int interface_mtu);

/* The state's MTU as verbs name it. */
enum ibv_mtu device_state_mtu(const struct device_state *);

/* The place of the GID in the table; -1: the table does not have it. No table has the GID of zeros. */
int device_state_find(const struct device_state *, const union ibv_gid *);
/* Returns true if this place has a GID. */
bool device_state_has(const struct device_state *, unsigned index);

/* Returns the state that follows `before` on this interface. As with a kernel, a GID keeps its place as long as the
 * interface has its address, and a new GID gets the first free place. The place `first_gid` has the link-local GID of
 * the MAC, whether or not the interface has that address. If the interface does not exist, it has no addresses, and MTU
 * and MAC stay as they were. */
struct device_state device_state_follow(const struct device_state *before, const struct interface *);

bool device_state_equals(const struct device_state *, const struct device_state *);

/* Makes device_now return a copy of this state. False: no memory, and nothing changed. One caller at a time. */
bool device_state_publish(struct device *, const struct device_state *);
