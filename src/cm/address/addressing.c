#include "cm/address/addressing.h"

#include <string.h>

struct cm_parameters addressing_put(const struct identifier *identifier, const struct cm_parameters *parameters)
{
    struct cm_parameters whole = *parameters;
    const struct cm_address *source = &identifier->source, *destination = &identifier->destination;
    if (destination->family == AF_IB)
        return whole;
    struct cm_ip ip = {.version = destination->family == AF_INET ? 4 : 6, .source_port = source->port};
    unsigned from = destination->family == AF_INET ? 12 : 0;
    memcpy(ip.source + from, source->gid + from, 16 - from);
    memcpy(ip.destination + from, destination->gid + from, 16 - from);
    cm_ip_encode(&ip, whole.private_data);
    memcpy(whole.private_data + CM_IP_BYTES, parameters->private_data, parameters->private_length);
    whole.private_length = (uint8_t)(parameters->private_length + CM_IP_BYTES);
    return whole;
}

void addressing_take(struct identifier *identifier, const struct identifier *listener, const struct cm_ip *ip,
                     const struct cm_route *route)
{
    const struct cm_address *at = &listener->source;
    struct cm_address any = cm_any(!ip ? AF_IB : ip->version == 4 ? AF_INET : AF_INET6);
    identifier->source = identifier->destination = any;
    identifier->source.port = at->port;
    identifier->source.service = at->service;
    identifier->source.service_mask = at->service_mask;
    identifier->port = route->from;
    identifier->route = *route;
    identifier->has_port = identifier->has_route = true;
    if (!ip) {
        memcpy(identifier->source.gid, route->from.gid, 16);
        memcpy(identifier->destination.gid, route->gid, 16);
        return;
    }
    unsigned from = ip->version == 4 ? 12 : 0;
    memcpy(identifier->source.gid + from, ip->destination + from, 16 - from);
    memcpy(identifier->destination.gid + from, ip->source + from, 16 - from);
    identifier->destination.port = ip->source_port;
}
