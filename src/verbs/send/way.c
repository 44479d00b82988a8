#include "verbs/send/way.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "config/gid.h"
#include "config/link_layer.h"
#include "diag/log.h"
#include "process/port.h"

enum { HOP_LIMIT = 64 /* of the ways within this host, as of an ordinary route */ };

static enum reason reason_of(int error)
{
    return !error ? REASON_NONE : error == ETIMEDOUT ? REASON_NO_NEIGHBOR : REASON_NO_ROUTE;
}

int way_find(const struct context *context, const struct ibv_ah_attr *attr, struct way *way)
{
    const struct device *device = context->device;
    *way = (struct way){.reach = {.hop_limit = attr->grh.hop_limit}};
    if (link_layer_is_infiniband(device) || link_layer_is_multicast(device, attr))
        return 0;
    way->reach.hop_limit = HOP_LIMIT;
    if (link_layer_is_local(device, attr))
        return 0;
    if (!device->interface[0]) {
        way->reason = REASON_NO_NETWORK;
        return ENETUNREACH;
    }
    int error = port_reach(context->process, device, attr, &way->reach);
    way->reason = reason_of(error);
    return error;
}

static const char *text_of(const uint8_t gid[16], char text[INET6_ADDRSTRLEN])
{
    bool ipv4 = grh_is_ipv4(gid);
    return inet_ntop(ipv4 ? AF_INET : AF_INET6, ipv4 ? gid + 12 : gid, text, INET6_ADDRSTRLEN) ? text : "?";
}

void way_report(const struct context *context, const struct ibv_ah_attr *attr, const struct way *way, const char *call)
{
    char there[INET6_ADDRSTRLEN], neighbor[INET6_ADDRSTRLEN];
    const char *interface = context->device->interface;
    text_of(attr->grh.dgid.raw, there);
    if (way->reason == REASON_NO_NETWORK)
        log_reason(LOG_WARN, way->reason, "%s: dgid %s", call, there);
    else if (way->reason == REASON_NO_ROUTE || !memcmp(way->reach.neighbor, attr->grh.dgid.raw, 16))
        log_reason(LOG_WARN, way->reason, "%s: dgid %s, interface %s", call, there, interface);
    else
        log_reason(LOG_WARN, way->reason, "%s: dgid %s, interface %s, by the router %s", call, there, interface,
                   text_of(way->reach.neighbor, neighbor));
}
