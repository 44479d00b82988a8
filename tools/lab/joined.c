#include "lab/joined.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "command.h"
#include "lab/network/forwarder.h"
#include "lab/network/rtnetlink.h"
#include "lab/network/virtual_host.h"

#define BRIDGE "switch"

static int make_bridge(int netlink)
{
    int error = netlink < 0 ? errno : rtnetlink_add_bridge(netlink, BRIDGE);
    if (!error)
        error = rtnetlink_no_own_address(netlink, BRIDGE);
    if (!error)
        error = rtnetlink_set_up(netlink, BRIDGE, true);
    if (error == EOPNOTSUPP)
        complain("lab: The kernel has no bridges: \"modprobe bridge\" as root may load them.");
    else if (error)
        complain("lab: The hosts can't be joined by a bridge: %s.", strerror(error));
    return error;
}

bool joined_make(struct joined *joined, struct network *network)
{
    const struct lab_plan *plan = network->plan;
    int netlink = rtnetlink_open();
    int error = make_bridge(netlink);
    for (unsigned i = 0; !error && i < plan->count; i++) {
        const char *name = plan->hosts[i];
        joined->holders[i] = virtual_host_start(plan, i, netlink);
        error = joined->holders[i] < 0 ? EIO : rtnetlink_set_bridge(netlink, name, BRIDGE);
        if (error && joined->holders[i] > 0)
            complain("lab: The host \"%s\" can't be joined to the bridge: %s.", name, strerror(error));
    }
    joined->network = network;
    joined->wiring = (struct wiring){plan, joined->holders, netlink};
    return !error;
}

bool joined_find(struct joined *joined, struct network *network)
{
    const struct lab_plan *plan = network->plan;
    int netlink = rtnetlink_open();
    joined->network = network;
    joined->wiring = (struct wiring){plan, joined->holders, netlink};
    for (unsigned i = 0; i < plan->count; i++)
        joined->holders[i] = virtual_host_find(plan->hosts[i]);
    return netlink >= 0 ? true : complain_and(false, "lab: The hosts can't be reached: %s.", strerror(errno));
}

static bool set_ports(struct joined *joined, char *why, size_t size)
{
    for (unsigned i = 0; i < joined->network->plan->count; i++) {
        if (joined->down[i] == joined->network->port_down[i])
            continue;
        if (!wiring_set_up(&joined->wiring, i, joined->down[i], why, size))
            return false;
        joined->down[i] = joined->network->port_down[i];
    }
    return true;
}

bool joined_follow(struct joined *joined, char *why, size_t size)
{
    struct network *network = joined->network;
    if (network->mtu != joined->mtu && !wiring_set_mtu(&joined->wiring, network->mtu, why, size))
        return false;
    joined->mtu = network->mtu;
    if (!network->is_plain && !joined->forwarder) {
        if (!wiring_make_plain(&joined->wiring, why, size))
            return false;
        joined->forwarder = forwarder_start(network, joined->wiring.netlink, joined->simulated, why, size);
        if (!joined->forwarder)
            return false;
    }
    return set_ports(joined, why, size);
}

bool joined_answer(struct joined *joined, const char *request, char *reply, size_t size)
{
    char target[64];
    int length = 0;
    if (!*request) {
        network_print(joined->network, reply, size);
        return true;
    }
    sscanf(request, "%63s %n", target, &length);
    return network_change(joined->network, target, request + length, reply, size) && joined_follow(joined, reply, size);
}

bool joined_work(struct joined *joined, struct pollfd *ready, unsigned own)
{
    unsigned count = own;
    struct timespec left, *most = NULL;
    if (joined->forwarder) {
        int64_t next = forwarder_next(joined->forwarder);
        count += forwarder_wants(joined->forwarder, ready + own);
        left = (struct timespec){next / 1000000000, next % 1000000000};
        most = next < 0 ? NULL : &left;
    }
    if (ppoll(ready, count, most, NULL) < 0 && errno != EINTR)
        return false;
    if (joined->forwarder)
        forwarder_work(joined->forwarder);
    return true;
}
