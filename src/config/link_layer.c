#include "config/link_layer.h"

#include "config/device_identity.h"
#include "config/device_state.h"
#include "config/gid.h"
#include "config/local_gid.h"

enum { SUBNET_TIMEOUT = 18 }; /* 4.096 us * 2^18, as opensm sets it */

static enum reason check_roce(const struct device *device, const struct ibv_ah_attr *attr)
{
    const struct device_state *now = device_now(device);
    if (!attr->is_global)
        return REASON_NO_GRH;
    if (!device_state_has(now, attr->grh.sgid_index))
        return REASON_GID_INDEX;
    if (device->interface[0] && gid_is_ipv4(&now->gids[attr->grh.sgid_index]) != gid_is_ipv4(&attr->grh.dgid))
        return REASON_GID_FAMILY;
    return gid_is_zero(&attr->grh.dgid) ? REASON_NO_DGID : REASON_NONE;
}

static bool is_multicast_gid(const union ibv_gid *gid)
{
    return gid->raw[0] == 0xff;
}

/* The LID and the GID of a group's address are both multicast ones; of another address neither is. */
static enum reason check_infiniband(const struct device *device, const struct ibv_ah_attr *attr)
{
    if (attr->is_global && !device_state_has(device_now(device), attr->grh.sgid_index))
        return REASON_GID_INDEX;
    if (attr->is_global && gid_is_zero(&attr->grh.dgid))
        return REASON_NO_DGID;
    bool group = attr->dlid >= LINK_LAYER_MULTICAST_LID && attr->dlid != LINK_LAYER_PERMISSIVE_LID;
    bool fits = group == (attr->is_global && is_multicast_gid(&attr->grh.dgid));
    return attr->dlid && attr->dlid != LINK_LAYER_PERMISSIVE_LID && fits ? REASON_NONE : REASON_DLID;
}

/* Returns true for values of enum ibv_rate: 1 is not a value, and the last is of rdma-core 60 and later. */
static bool is_rate(uint8_t rate)
{
    enum { RATE_1600_GBPS = 25 };
    return rate == IBV_RATE_MAX || (rate >= IBV_RATE_2_5_GBPS && rate <= RATE_1600_GBPS);
}

enum reason link_layer_check(const struct device *device, const struct ibv_ah_attr *attr)
{
    if (!is_rate(attr->static_rate))
        return REASON_STATIC_RATE;
    return link_layer_is_infiniband(device) ? check_infiniband(device, attr) : check_roce(device, attr);
}

bool link_layer_is_multicast(const struct device *device, const struct ibv_ah_attr *attr)
{
    if (link_layer_is_infiniband(device))
        return attr->dlid >= LINK_LAYER_MULTICAST_LID;
    return gid_is_multicast(&attr->grh.dgid);
}

/* Checks for the LIDs of DEVICES_MAX devices, as another process may have configured more devices than this one. */
bool link_layer_is_local(const struct device *device, const struct ibv_ah_attr *attr)
{
    if (!link_layer_is_infiniband(device))
        return config_local_gid(&attr->grh.dgid);
    return attr->dlid >= LINK_LAYER_FIRST_LID && attr->dlid < LINK_LAYER_FIRST_LID + DEVICES_MAX &&
           (!attr->is_global || config_local_gid(&attr->grh.dgid));
}

enum reason link_layer_check_group(const struct device *device, const union ibv_gid *gid, uint16_t lid)
{
    if (!link_layer_is_infiniband(device))
        return gid_is_multicast(gid) ? REASON_NONE : REASON_GROUP;
    return is_multicast_gid(gid) && lid >= LINK_LAYER_MULTICAST_LID && lid != LINK_LAYER_PERMISSIVE_LID ? REASON_NONE
                                                                                                        : REASON_GROUP;
}

void link_layer_describe(const struct device *device, struct ibv_port_attr *attr)
{
    attr->link_layer = device->link_layer;
    if (!link_layer_is_infiniband(device)) {
        attr->port_cap_flags = IDENTITY_PORT_CAPS;
        attr->flags = IBV_QPF_GRH_REQUIRED;
        return;
    }
    attr->port_cap_flags = IDENTITY_PORT_CAPS_INFINIBAND;
    attr->lid = device->lid;
    attr->sm_lid = LINK_LAYER_SM_LID;
    attr->subnet_timeout = SUBNET_TIMEOUT;
}

enum ibv_gid_type link_layer_gid_type(const struct device *device)
{
    return link_layer_is_infiniband(device) ? IBV_GID_TYPE_IB : IBV_GID_TYPE_ROCE_V2;
}

const char *link_layer_name(const struct device *device)
{
    return link_layer_is_infiniband(device) ? "InfiniBand" : "Ethernet";
}

/* The kernel has one name for the GID types of InfiniBand and RoCE v1, as both put a GRH on the wire. */
const char *link_layer_gid_type_name(const struct device *device)
{
    return link_layer_is_infiniband(device) ? "IB/RoCE v1" : "RoCE v2";
}
