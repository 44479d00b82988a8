/* Options of an identifier that programs set, and the path that they choose for it. */
#include <errno.h>

#include "cm/identifier.h"
#include "cm/queue_pair/qp_type.h"

int identifier_set_tos(struct identifier *identifier, uint8_t tos)
{
    identifier->options.tos = tos;
    identifier->route.traffic_class = tos;
    return 0;
}

int identifier_set_reuse(struct identifier *identifier, bool reuse)
{
    bool may = reuse ? identifier->state != IDENTIFIER_LISTEN : identifier->state == IDENTIFIER_IDLE;
    if (!may)
        return identifier_refuse_state(identifier, reuse ? "one before listen" : "idle");
    identifier->options.reuse = reuse;
    return 0;
}

int identifier_set_only_family(struct identifier *identifier, bool only)
{
    if (identifier->state != IDENTIFIER_IDLE && identifier->state != IDENTIFIER_ADDR_BOUND)
        return identifier_refuse_state(identifier, "idle or bound");
    identifier->options.only_family = only;
    identifier->options.only_family_set = true;
    return 0;
}

int identifier_set_ack_timeout(struct identifier *identifier, uint8_t timeout)
{
    if (!qp_type_find(identifier->qp_type)->requests)
        return identifier_refuse(identifier, EINVAL, REASON_CM_OPTION_TYPE, "its queue pair is of type %u",
                                 identifier->qp_type);
    identifier->options.ack_timeout = timeout;
    identifier->options.ack_timeout_set = true;
    return 0;
}

/* --- a path */

/* The next hop's address belongs to the resolved GIDs, so a path between other GIDs can't be taken. */
static bool is_between(const struct chosen_path *path, const struct cm_route *route)
{
    return !memcmp(path->source, route->from.gid, 16) && !memcmp(path->destination, route->gid, 16);
}

static int refuse_path(const struct identifier *identifier, const struct chosen_path *path)
{
    bool source = memcmp(path->source, identifier->route.from.gid, 16);
    struct cm_address other = {.family = AF_INET6};
    memcpy(other.gid, source ? path->source : path->destination, 16);
    return identifier_refuse_address(identifier, EINVAL, REASON_CM_PATH_GIDS,
                                     source ? "the path's source" : "the path's destination", &other);
}

int identifier_set_path(struct identifier *identifier, const struct chosen_path *path)
{
    struct cm_route *route = &identifier->route;
    if (identifier->state != IDENTIFIER_ADDR_RESOLVED)
        return identifier_refuse_state(identifier, "address resolved");
    if (!is_between(path, route))
        return refuse_path(identifier, path);
    identifier->state = IDENTIFIER_ROUTE_RESOLVED;
    identifier->has_route = true;
    route->flow_label = path->flow_label;
    route->traffic_class = path->traffic_class;
    route->lifetime = path->lifetime;
    if (path->hop_limit)
        route->hop_limit = path->hop_limit;
    if (path->mtu && path->mtu < route->from.mtu)
        route->from.mtu = path->mtu;
    identifier_tell(identifier, CM_ROUTE_RESOLVED, 0);
    return 0;
}
