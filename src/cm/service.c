#include "cm/service.h"

#include <errno.h>

#include "cm/connect.h"
#include "cm/queue_pair/qp_type.h"
#include "cm/resolve.h"

static const struct service_operations *service_of(const struct identifier *identifier)
{
    return qp_type_find(identifier->qp_type)->datagram ? &resolve_service : &connect_service;
}

static int refuse_private(const struct identifier *identifier, unsigned length, unsigned limit)
{
    return identifier_refuse(identifier, EINVAL, REASON_CM_PRIVATE_LENGTH, "private_data_len is %u, at most %u", length,
                             limit);
}

/* Refuses a call for which the session is in a wrong state, or (EISCONN) already in the state to which the call
 * leads. */
static int refuse_session(const struct identifier *identifier, int error)
{
    const struct service_operations *service = service_of(identifier);
    const char *state = service->state(identifier->session);
    if (error == EISCONN)
        return identifier_refuse_usual(identifier, error, REASON_CM_ESTABLISHED, "its connection is in state %s",
                                       state);
    return identifier_refuse_connection(identifier, error, state,
                                        service->rejected ? service->rejected(identifier->session) : 0);
}

/* Refuses a second connection. */
static int refuse_again(const struct identifier *identifier)
{
    const struct service_operations *service = service_of(identifier);
    uint16_t rejected = service->rejected ? service->rejected(identifier->session) : 0;
    if (rejected)
        return identifier_refuse(identifier, EINVAL, REASON_CM_USED, "its connection was rejected with reason %u",
                                 rejected);
    return identifier_refuse(identifier, EINVAL, REASON_CM_USED, "its connection is in state %s",
                             service->state(identifier->session));
}

static int may_reach(const struct identifier *identifier)
{
    if (identifier->removed)
        return identifier_refuse(identifier, EINVAL, REASON_CM_REMOVED, "its state is %s",
                                 identifier_state_name(identifier->state));
    if (!identifier->has_port)
        return identifier_refuse(identifier, EINVAL, REASON_CM_UNBOUND, "its state is %s",
                                 identifier_state_name(identifier->state));
    return 0;
}

int service_connect(struct identifier *identifier, const struct cm_parameters *parameters, const struct cm_ece *ece,
                    nanos now)
{
    const struct service_operations *service = service_of(identifier);
    unsigned limit = service->request_private - (identifier->destination.family == AF_IB ? 0 : CM_IP_BYTES);
    if (identifier->state != IDENTIFIER_ROUTE_RESOLVED && identifier->session)
        return refuse_again(identifier);
    if (identifier->state != IDENTIFIER_ROUTE_RESOLVED)
        return identifier_refuse_state(identifier, "route resolved");
    int error = may_reach(identifier);
    if (error)
        return error;
    if (parameters->private_length > limit)
        return refuse_private(identifier, parameters->private_length, limit);
    error = service->connect(identifier, parameters, ece, now);
    if (!error)
        identifier->state = IDENTIFIER_CONNECT;
    return error;
}

/* Checks that this end or the peer has asked for a connection. */
static int has_session(const struct identifier *identifier)
{
    return identifier->session ? may_reach(identifier) : identifier_refuse_state(identifier, "connect or disconnect");
}

static int is_connecting(const struct identifier *identifier)
{
    if (identifier->state != IDENTIFIER_CONNECT || !identifier->session)
        return identifier_refuse_state(identifier, "connect");
    return may_reach(identifier);
}

/* Rejects the peer after a failure, so that it does not wait for an answer. */
static int answered(struct identifier *identifier, int error, nanos now)
{
    if (error)
        service_of(identifier)->reject(identifier, CM_REJECT_CONSUMER, NULL, 0, now);
    return error;
}

static int accept_with(struct identifier *identifier, const struct cm_parameters *parameters, const struct cm_ece *ece,
                       nanos now)
{
    const struct service_operations *service = service_of(identifier);
    if (parameters->private_length > service->accept_private)
        return refuse_private(identifier, parameters->private_length, service->accept_private);
    int error = service->accept(identifier, parameters, ece, now);
    return error ? refuse_session(identifier, error) : 0;
}

int service_accept(struct identifier *identifier, uint64_t uid, const struct cm_parameters *parameters,
                   const struct cm_ece *ece, nanos now)
{
    int error = is_connecting(identifier);
    if (error)
        return error;
    error = accept_with(identifier, parameters, ece, now);
    if (!error) {
        identifier->uid = uid;
        identifier->named = true;
    }
    return answered(identifier, error, now);
}

int service_confirm(struct identifier *identifier, nanos now)
{
    int error = is_connecting(identifier);
    if (error)
        return error;
    error = service_of(identifier)->confirm(identifier, now);
    return answered(identifier, error ? refuse_session(identifier, error) : 0, now);
}

int service_reject(struct identifier *identifier, uint8_t reason, const void *private_data, uint8_t length, nanos now)
{
    const struct service_operations *service = service_of(identifier);
    int error = has_session(identifier);
    if (error)
        return error;
    if (reason && reason != CM_REJECT_CONSUMER && reason != CM_REJECT_VENDOR_OPTION)
        return identifier_refuse(identifier, EINVAL, REASON_CM_REJECT_REASON, "reason %u", reason);
    if (length > service->reject_private)
        return refuse_private(identifier, length, service->reject_private);
    error = service->reject(identifier, reason ? reason : CM_REJECT_CONSUMER, private_data, length, now);
    return error ? refuse_session(identifier, error) : 0;
}

int service_disconnect(struct identifier *identifier, nanos now)
{
    const struct service_operations *service = service_of(identifier);
    int error = has_session(identifier);
    if (!error && service->disconnect)
        service->disconnect(identifier, now);
    return error;
}

int service_notify(struct identifier *identifier, enum ibv_event_type event, nanos now)
{
    const struct service_operations *service = service_of(identifier);
    int error = has_session(identifier);
    if (error || event == IBV_EVENT_PATH_MIG)
        return error;
    if (event != IBV_EVENT_COMM_EST)
        return identifier_refuse(identifier, EINVAL, REASON_CM_NOTIFY_EVENT, "event %d", event);
    if (!service->establish)
        return identifier_refuse(identifier, EINVAL, REASON_CM_NOTIFY_DATAGRAM, "its queue pair is of type %u",
                                 identifier->qp_type);
    error = service->establish(identifier, now);
    return error ? refuse_session(identifier, error) : 0;
}
