#include "verbs/send/route.h"

#include <errno.h>
#include <string.h>

#include "config/link_layer.h"
#include "events/refusal.h"
#include "events/words.h"
#include "process/port.h"
#include "verbs/object/context.h"

enum { HOP_LIMIT = 64 /* on ways within this host, as on an ordinary route */ };

int route_find(const struct context *context, const struct ibv_ah_attr *attr, struct way *way)
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
        return refused(ENETUNREACH); /* the caller writes the line: route_refuse */
    }
    int error = port_reach(context->process, device, attr, &way->reach);
    way->reason = !error ? REASON_NONE : error == ETIMEDOUT ? REASON_NO_NEIGHBOR : REASON_NO_ROUTE;
    return error;
}

int route_refuse(const struct context *context, const struct ibv_ah_attr *attr, const struct way *way, const char *call,
                 int error)
{
    char there[WORDS_GID], neighbor[WORDS_GID];
    const char *interface = context->device->interface;
    words_gid(&attr->grh.dgid, there);
    if (way->reason == REASON_NO_NETWORK)
        return refuse_in(call, error, way->reason, "dgid %s", there);
    if (way->reason == REASON_NO_ROUTE || !memcmp(way->reach.neighbor, attr->grh.dgid.raw, 16))
        return refuse_in(call, error, way->reason, "dgid %s, interface %s", there, interface);
    union ibv_gid router;
    memcpy(&router, way->reach.neighbor, sizeof router);
    return refuse_in(call, error, way->reason, "dgid %s, interface %s, by the router %s", there, interface,
                     words_gid(&router, neighbor));
}
