/* The state of a device as the interface below it is now, and how a new one is published. */
#ifndef CONFIG_DEVICE_STATE_H
#define CONFIG_DEVICE_STATE_H

#include "config/device.h"

enum { INTERFACE_ADDRESSES = 256 }; /* most addresses of an interface that are looked at */

/* An interface, as the kernel describes it. */
struct interface {
    bool found, up;
    unsigned index;
    uint32_t mtu; /* of the interface */
    uint8_t mac[6];
    unsigned address_count;
    union ibv_gid addresses[INTERFACE_ADDRESSES]; /* as GIDs: those of IPv4, then those of IPv6 */
};

/* The largest InfiniBand MTU that fits below IPv6, UDP and the longest transport headers into packets of this size, as
 * the kernel reckons. */
uint32_t config_fitting_mtu(int interface_mtu);

/* The place of the GID in the table; -1: it is not there. The GID of zeros is in no table. */
int device_state_find(const struct device_state *, const union ibv_gid *);
/* Returns true if there is a GID at this place. */
bool device_state_has(const struct device_state *, unsigned index);

/* Returns the state that follows `before` on this interface. As with a kernel, a GID keeps its place for as long as its
 * address is there, and a new one takes the first place that is free. The first place is that of the link-local GID
 * which follows from the MAC, whether or not the interface has that address. An interface that is not there has no
 * addresses, and the MTU and MAC stay as they were. */
struct device_state device_state_follow(const struct device_state *before, const struct interface *);

bool device_state_equals(const struct device_state *, const struct device_state *);

/* From now on device_now answers a copy of this. False: no memory, all is as before. One caller at a time. */
bool device_state_publish(struct device *, const struct device_state *);

#endif
