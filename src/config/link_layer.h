/* The properties that a port's link layer decides: addresses, and the attributes of the port. RoCE addresses by GID and
 * has no LIDs; InfiniBand addresses by LID, with a GRH or without. All devices of a process have the same link layer.
 *
 * The subnet of an InfiniBand port is this host: all processes share the LIDs of its devices, no other host has one,
 * and nothing asks its subnet manager, which would be LID 1. */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "config/device.h"
#include "diag/diag.h"

enum {
    LINK_LAYER_SM_LID = 1,
    LINK_LAYER_FIRST_LID = 2,          /* for the device with index 0; each further device has the next */
    LINK_LAYER_MULTICAST_LID = 0xc000, /* the first; IBA 4.1.3 */
    LINK_LAYER_PERMISSIVE_LID = 0xffff,
};

static inline bool link_layer_is_infiniband(const struct device *device)
{
    return device->link_layer == IBV_LINK_LAYER_INFINIBAND;
}

/* Checks whether the port can send to this address. Returns REASON_NONE, or why ibv_create_ah and ibv_modify_qp return
 * EINVAL. */
enum reason link_layer_check(const struct device *, const struct ibv_ah_attr *);

/* Return true if a checked address is the address of a multicast group, and if it leads to this host. (On InfiniBand
 * the LID decides, and the GID of a GRH has to agree.) */
bool link_layer_is_multicast(const struct device *, const struct ibv_ah_attr *);
bool link_layer_is_local(const struct device *, const struct ibv_ah_attr *);

/* Checks whether a queue pair may be attached to this group. Returns REASON_NONE, or why not. */
enum reason link_layer_check_group(const struct device *, const union ibv_gid *, uint16_t lid);

/* Fills in the fields of ibv_query_port(3) that depend on the link layer. */
void link_layer_describe(const struct device *, struct ibv_port_attr *);

enum ibv_gid_type link_layer_gid_type(const struct device *);

/* The words of /sys/class/infiniband for link layer and GID type. */
const char *link_layer_name(const struct device *);
const char *link_layer_gid_type_name(const struct device *);
