#include "cm/resolve.h"

#include <errno.h>

#include "base/container.h"
#include "cm/address/addressing.h"
#include "cm/queue_pair/qp_type.h"

enum { REQUEST_PRIVATE = 216, REPLY_PRIVATE = 136 };

/* --- the end becomes an event */

static void describe_reply(struct cm_event *event, const struct cm_message *reply, const struct cm_route *route)
{
    event->parameters.private_length = REPLY_PRIVATE;
    memcpy(event->parameters.private_data, reply->private_data, REPLY_PRIVATE);
    if (event->kind != CM_ESTABLISHED)
        return;
    event->parameters.qpn = reply->sidr_rep.qpn;
    event->parameters.qkey = reply->sidr_rep.qkey;
    event->ece = (struct cm_ece){.vendor = reply->sidr_rep.vendor, .options = reply->modifier};
    event->has_route = true;
    event->route = *route;
}

static void resolved(struct resolution *resolution, const struct cm_message *reply)
{
    struct session *session = &container_of(resolution, struct resolve_session, resolution)->session;
    bool valid = reply && reply->sidr_rep.status == CM_SIDR_VALID;
    struct cm_event *event = identifier_event(session->identifier, valid ? CM_ESTABLISHED : CM_UNREACHABLE,
                                              reply ? reply->sidr_rep.status : -ETIMEDOUT);
    if (!event)
        return;
    if (reply)
        describe_reply(event, reply, &session->route);
    else
        event->route = session->route;
    event_push(event);
}

static const struct resolution_operations outcomes = {.resolved = resolved};

/* --- the session */

SESSION_OPERATIONS(resolve, resolution)

static struct resolution *open_resolution(struct identifier *identifier, const struct cm_route *route)
{
    struct resolution *resolution = open_session(identifier, route);
    if (resolution)
        resolution_initialize(resolution, &outcomes);
    return resolution;
}

/* --- the active side */

static int start_resolution(struct identifier *identifier, const struct cm_parameters *parameters,
                            const struct cm_ece *ece, nanos now)
{
    struct cm_parameters whole = addressing_put(identifier, parameters);
    struct resolution *resolution = open_resolution(identifier, &identifier->route);
    if (!resolution)
        return ENOMEM;
    uint32_t request = (uint32_t)identifier->session->by_local.key;
    uint64_t transaction = (uint64_t)identifier->manager->agent << 32 | request;
    resolution_ask(resolution, identifier_service(identifier, &identifier->destination), transaction, request, &whole,
                   identifier->manager->retries, now);
    session_settle(identifier->session);
    return 0;
}

/* --- the passive side */

static struct cm_event *make_event(struct identifier *listener, struct identifier *identifier,
                                   const struct cm_message *message, const struct cm_ip *ip)
{
    struct cm_event *event = identifier_request_event(listener, identifier);
    unsigned skip = ip ? CM_IP_BYTES : 0;
    if (!event)
        return NULL;
    event->parameters.private_length = (uint8_t)(REQUEST_PRIVATE - skip);
    memcpy(event->parameters.private_data, message->private_data + skip, event->parameters.private_length);
    return event;
}

bool resolve_requested(struct identifier *listener, const struct cm_message *message, const struct cm_ip *ip,
                       const struct cm_route *route)
{
    struct manager *manager = listener->manager;
    struct identifier *identifier = identifier_requested(listener, QP_TYPE_DATAGRAM);
    if (!identifier)
        return false;
    struct cm_event *event = make_event(listener, identifier, message, ip);
    struct resolution *resolution = event ? open_resolution(identifier, route) : NULL;
    if (!resolution) {
        if (event)
            manager->operations->release(manager, event);
        identifier_destroy(identifier, 0);
        return false;
    }
    addressing_take(identifier, listener, ip, route);
    resolution_asked(resolution, message);
    session_know_request(identifier->session, message->local_id);
    event_push(event);
    session_settle(identifier->session);
    return true;
}

static int answer_request(struct identifier *identifier, enum cm_sidr_status status,
                          const struct cm_parameters *parameters)
{
    int error = resolution_answer(resolve_of(identifier->session), status, parameters);
    session_settle(identifier->session);
    return error;
}

static int accept_request(struct identifier *identifier, const struct cm_parameters *parameters,
                          const struct cm_ece *ece, nanos now)
{
    struct cm_parameters own = *parameters;
    if (identifier->source.family != AF_IB || !own.qkey)
        own.qkey = CM_QKEY;
    resolve_of(identifier->session)->ece = *ece;
    return answer_request(identifier, CM_SIDR_VALID, &own);
}

/* A resolution needs no confirmation; as on Linux, the call answers a request, if there is one. */
static int confirm_nothing(struct identifier *identifier, nanos now)
{
    static const struct cm_parameters none = {.qkey = CM_QKEY};
    return answer_request(identifier, CM_SIDR_VALID, &none);
}

static int reject_request(struct identifier *identifier, uint16_t reason, const void *private_data, uint8_t length,
                          nanos now)
{
    struct cm_parameters parameters = {.private_length = length};
    if (length)
        memcpy(parameters.private_data, private_data, length);
    return answer_request(identifier, CM_SIDR_REJECTED, &parameters);
}

static const char *state_of(const struct session *session)
{
    return resolution_state_name(resolve_of(session)->state);
}

const struct service_operations resolve_service = {.request_private = REQUEST_PRIVATE,
                                                   .accept_private = REPLY_PRIVATE,
                                                   .reject_private = REPLY_PRIVATE,
                                                   .state = state_of,
                                                   .connect = start_resolution,
                                                   .accept = accept_request,
                                                   .confirm = confirm_nothing,
                                                   .reject = reject_request};
