#include "cm/address/address_query.h"

#include <errno.h>
#include <string.h>

#include "base/container.h"
#include "base/time_scale.h"

enum { DEFAULT_LIFETIME = 18 };

/* Binds an identifier without a source to the wildcard, with the scope of the destination, as Linux does: then the
 * address that is found can be bound again. */
static int bind_for(struct identifier *identifier, const struct cm_address *source,
                    const struct cm_address *destination)
{
    struct cm_address any = cm_any(destination->family);
    if (identifier->state == IDENTIFIER_ADDR_BOUND)
        return 0;
    if (destination->family == AF_INET6)
        any.scope = destination->scope;
    return identifier_bind(identifier, source->family ? source : &any);
}

static int find_route(struct identifier *identifier, const struct cm_address *destination)
{
    struct manager *manager = identifier->manager;
    struct cm_address source = identifier->source;
    int error = manager->operations->find_route(manager, identifier->has_port ? &identifier->port : NULL, &source,
                                                destination, &identifier->route);
    if (error)
        return error;
    identifier->source = source;
    identifier->destination = *destination;
    identifier->port = identifier->route.from;
    identifier->has_port = true;
    identifier->route.traffic_class = identifier->options.tos;
    identifier->route.lifetime = DEFAULT_LIFETIME;
    return 0;
}

static void end_query(struct identifier *identifier, int error)
{
    identifier->state = error ? IDENTIFIER_ADDR_BOUND : IDENTIFIER_ADDR_RESOLVED;
    struct cm_event *event = identifier_event(identifier, error ? CM_ADDR_ERROR : CM_ADDR_RESOLVED, -error);
    if (!event)
        return;
    memcpy(event->route.gid, identifier->query.destination.gid, sizeof event->route.gid); /* even without a route */
    event_push(event);
}

/* Neighbours on a network answer within a fraction of a millisecond; later questions are farther apart. */
static void ask_again(struct identifier *identifier, nanos now)
{
    nanos next = now + nanos_backoff(identifier->query.asked++), until = identifier->query.until;
    timer_set(&identifier->manager->timers, &identifier->query.timer, next < until ? next : until);
}

static void expired(struct timer *timer, nanos now)
{
    struct identifier *identifier = container_of(timer, struct identifier, query.timer);
    int error = find_route(identifier, &identifier->query.destination);
    if (error == EAGAIN && now < identifier->query.until)
        ask_again(identifier, now);
    else
        end_query(identifier, error == EAGAIN ? ETIMEDOUT : error);
}

static void wait_for_neighbor(struct identifier *identifier, uint32_t milliseconds, nanos now)
{
    identifier->state = IDENTIFIER_ADDR_QUERY;
    identifier->query.timer.expired = expired;
    identifier->query.until =
        milliseconds > INT32_MAX ? NANOS_NEVER : now + time_scaled(milliseconds * NANOS_MILLISECOND);
    identifier->query.asked = 0;
    ask_again(identifier, now);
}

static int may_resolve(const struct identifier *identifier, const struct cm_address *destination)
{
    if (identifier->state != IDENTIFIER_IDLE && identifier->state != IDENTIFIER_ADDR_BOUND)
        return identifier_refuse_state(identifier, "idle or bound");
    if (!cm_is_known_family(destination->family))
        return identifier_refuse(identifier, EINVAL, REASON_CM_FAMILY, "family %u", destination->family);
    return 0;
}

/* A destination that no device leads to gives an event; one that the host has no route to is an error of the call. */
int address_query_start(struct identifier *identifier, const struct cm_address *source,
                        const struct cm_address *destination, uint32_t milliseconds, nanos now)
{
    int error = may_resolve(identifier, destination);
    if (!error)
        error = bind_for(identifier, source, destination);
    if (error)
        return error;
    if (identifier->source.family != destination->family)
        return identifier_refuse(identifier, EINVAL, REASON_CM_FAMILIES,
                                 "family %u of the source, %u of the destination", identifier->source.family,
                                 destination->family);
    identifier->query.destination = *destination;
    error = find_route(identifier, destination);
    if (error == EAGAIN)
        wait_for_neighbor(identifier, milliseconds, now);
    else if (error && error != ENODEV)
        return identifier_refuse_address(identifier, error, REASON_CM_NO_ROUTE, "the destination", destination);
    else
        end_query(identifier, error);
    return 0;
}
