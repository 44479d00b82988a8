/* A device that this process sees. */
#pragma once

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/likely.h"
#include "config/limits.h"

enum { DEVICES_MAX = 16, GIDS = 16, DEVICE_PKEY = 0xffff };

/* The part of a device on a network interface that changes with the interface while programs run. */
struct device_state {
    union ibv_gid gids[GIDS]; /* RoCE v2, or the one of InfiniBand; unused places are zero, also between used ones */
    unsigned gid_count;       /* the last used place + 1 */
    unsigned first_gid;       /* the place of the link-local GID: 0, unless two empty places precede it (config.c) */
    uint32_t mtu;             /* bytes: the active MTU of the port */
    uint8_t mac[6];
    unsigned interface; /* index of the interface; 0: the device has no interface, or it does not exist */
    bool up; /* the interface exists, is up and has a carrier; true for a device that serves this host only */
};

struct device {
    unsigned index;
    uint8_t link_layer; /* IBV_LINK_LAYER_ETHERNET or _INFINIBAND; see config/link_layer.h */
    uint16_t lid;       /* of InfiniBand; 0 on RoCE, which has no LIDs */
    char interface[16]; /* RoCE on this network interface; "": this host only */
    char name[IBV_SYSFS_NAME_MAX];
    uint8_t guid[8]; /* made of the MAC that the device began with */
    struct device_state start;
    const struct device_state *_Atomic latest; /* NULL: still `start`. Read it by device_now */
    struct limits limits;
};

/* Counts the states that were published, of all devices: what was found out from states holds until it changes. Read it
 * before them. */
extern atomic_uint device_changes;

/* The device's state now. The struct stays unchanged for at least a minute and hundreds of changes (device_state.c): a
 * reader that needs two parts of it asks once, so that both belong together, and keeps no pointer. Thread-safe. */
static inline const struct device_state *device_now(const struct device *device)
{
    const struct device_state *latest = atomic_load_explicit(&device->latest, memory_order_acquire);
    return likely(!latest) ? &device->start : latest;
}
