#include "cm/address/route_query.h"

#include <errno.h>

#include "base/container.h"
#include "base/time_scale.h"

/* Different flows should take different ways through a network. Linux chooses labels so, and RoCEv2 UDP source
 * ports. */
static uint32_t choose_flow_label(const struct identifier *identifier)
{
    enum { LABEL_MASK = 0xfffff };
    const struct cm_address *source = &identifier->source, *destination = &identifier->destination;
    uint32_t label = destination->family == AF_INET ? 0 : destination->flow & LABEL_MASK;
    return label ? label : (source->port * 31u + destination->port) & LABEL_MASK;
}

static void route_query_answer(struct identifier *identifier)
{
    identifier->state = IDENTIFIER_ROUTE_RESOLVED;
    identifier->has_route = true;
    identifier->route.flow_label = choose_flow_label(identifier);
    if (identifier->options.ack_timeout_set && identifier->options.ack_timeout)
        identifier->route.lifetime = (uint8_t)(identifier->options.ack_timeout - 1);
    identifier_tell(identifier, CM_ROUTE_RESOLVED, 0);
}

/* Afterwards the program may look for the route again, as on Linux. */
static void route_query_expired(struct timer *timer, nanos now)
{
    struct identifier *identifier = container_of(timer, struct identifier, query.timer);
    identifier->state = IDENTIFIER_ADDR_RESOLVED;
    identifier_tell(identifier, CM_ROUTE_ERROR, -ETIMEDOUT);
}

static void wait_in_vain(struct identifier *identifier, uint32_t milliseconds, nanos now)
{
    identifier->state = IDENTIFIER_ROUTE_QUERY;
    identifier->query.timer.expired = route_query_expired;
    timer_set(&identifier->manager->timers, &identifier->query.timer,
              now + time_scaled(milliseconds * NANOS_MILLISECOND));
}

int route_query_start(struct identifier *identifier, uint32_t milliseconds, nanos now)
{
    if (!milliseconds)
        return identifier_refuse(identifier, EINVAL, REASON_CM_TIMEOUT, "timeout_ms is 0");
    if (identifier->state != IDENTIFIER_ADDR_RESOLVED)
        return identifier_refuse_state(identifier, "address resolved");
    if (manager_loses(identifier->manager, CM_ROUTE_ERROR, &identifier->destination))
        wait_in_vain(identifier, milliseconds, now);
    else
        route_query_answer(identifier);
    return 0;
}
