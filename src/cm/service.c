#include "cm/service.h"

#include <errno.h>

#include "cm/connect.h"
#include "cm/qp_type.h"
#include "cm/resolve.h"

static const struct service_operations *service_of(const struct identifier *identifier)
{
    return qp_type_find(identifier->qp_type)->datagram ? &resolve_service : &connect_service;
}

static bool has_device(const struct identifier *identifier)
{
    return identifier->has_port && !identifier->removed;
}

int service_connect(struct identifier *identifier, const struct cm_parameters *parameters, const struct cm_ece *ece,
                    nanos now)
{
    const struct service_operations *service = service_of(identifier);
    unsigned limit = service->request_private - (identifier->destination.family == AF_IB ? 0 : CM_IP_BYTES);
    if (!has_device(identifier) || identifier->state != IDENTIFIER_ROUTE_RESOLVED || parameters->private_length > limit)
        return EINVAL;
    int error = service->connect(identifier, parameters, ece, now);
    if (!error)
        identifier->state = IDENTIFIER_CONNECT;
    return error;
}

static bool is_connecting(const struct identifier *identifier)
{
    return has_device(identifier) && identifier->state == IDENTIFIER_CONNECT && identifier->session;
}

/* The peer is not left waiting for what can't come. */
static int answered(struct identifier *identifier, int error, nanos now)
{
    if (error)
        service_of(identifier)->reject(identifier, CM_REJECT_CONSUMER, NULL, 0, now);
    return error;
}

int service_accept(struct identifier *identifier, uint64_t uid, const struct cm_parameters *parameters,
                   const struct cm_ece *ece, nanos now)
{
    const struct service_operations *service = service_of(identifier);
    if (!is_connecting(identifier))
        return EINVAL;
    int error = parameters->private_length > service->accept_private
                    ? EINVAL
                    : service->accept(identifier, parameters, ece, now);
    if (!error) {
        identifier->uid = uid;
        identifier->named = true;
    }
    return answered(identifier, error, now);
}

int service_confirm(struct identifier *identifier, nanos now)
{
    if (!is_connecting(identifier))
        return EINVAL;
    return answered(identifier, service_of(identifier)->confirm(identifier, now), now);
}

int service_reject(struct identifier *identifier, uint8_t reason, const void *private_data, uint8_t length, nanos now)
{
    if (!has_device(identifier) || !identifier->session)
        return EINVAL;
    if (reason && reason != CM_REJECT_CONSUMER && reason != CM_REJECT_VENDOR_OPTION)
        return EINVAL;
    return service_of(identifier)->reject(identifier, reason ? reason : CM_REJECT_CONSUMER, private_data, length, now);
}

int service_disconnect(struct identifier *identifier, nanos now)
{
    if (!has_device(identifier) || !identifier->session)
        return EINVAL;
    service_of(identifier)->disconnect(identifier, now);
    return 0;
}

int service_notify(struct identifier *identifier, enum ibv_event_type event, nanos now)
{
    if (!has_device(identifier) || !identifier->session)
        return EINVAL;
    if (event == IBV_EVENT_PATH_MIG)
        return 0;
    return event == IBV_EVENT_COMM_EST ? service_of(identifier)->establish(identifier, now) : EINVAL;
}
