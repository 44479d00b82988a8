#include "cm/connect.h"

#include <errno.h>

#include "base/container.h"
#include "cm/address/addressing.h"
#include "cm/queue_pair/qp_type.h"

enum { RESPONSE_TIMEOUT = 20, PKEY = 0xffff, PERMISSIVE_LID = 0xffff };
enum { REQ_PRIVATE = 92, REP_PRIVATE = 196, REJ_PRIVATE = 148 };

/* --- outcomes become events */

static void put_private(struct cm_event *event, const struct cm_message *message, unsigned skip)
{
    event->parameters.private_length = (uint8_t)(cm_private_size(message->attribute) - skip);
    memcpy(event->parameters.private_data, message->private_data + skip, event->parameters.private_length);
}

/* The depths change places: the number of READs that one end answers is the number that the other may request. */
static void describe_rep(struct cm_event *event, const struct cm_message *message, const struct connection *connection)
{
    const struct cm_rep *rep = &message->rep;
    event->parameters.qpn = connection->remote.qpn;
    event->parameters.responder_resources = rep->initiator_depth;
    event->parameters.initiator_depth = rep->responder_resources;
    event->parameters.flow_control = rep->flow_control;
    event->parameters.rnr_retry_count = rep->rnr_retry_count;
    event->parameters.srq = rep->srq;
    event->ece = (struct cm_ece){.vendor = rep->vendor, .options = message->modifier};
    put_private(event, message, 0);
}

static enum cm_event_kind kind_of(enum connection_outcome outcome)
{
    static const enum cm_event_kind kinds[] = {
        [CONNECTION_ANSWERED] = CM_CONNECT_RESPONSE, [CONNECTION_REJECTED] = CM_REJECTED,
        [CONNECTION_UNREACHABLE] = CM_UNREACHABLE,   [CONNECTION_COMPLETE] = CM_ESTABLISHED,
        [CONNECTION_DISCONNECTED] = CM_DISCONNECTED, [CONNECTION_OVER] = CM_TIMEWAIT_EXIT};
    return kinds[outcome];
}

/* The only outcome after DISCONNECTED is the end of the timewait. */
static bool may_happen(const struct identifier *identifier, enum connection_outcome outcome)
{
    return identifier->state == (outcome == CONNECTION_OVER ? IDENTIFIER_DISCONNECT : IDENTIFIER_CONNECT);
}

static void tell(struct identifier *identifier, enum connection_outcome outcome, int status,
                 const struct cm_message *message, const struct connection *connection)
{
    struct cm_event *event = identifier_event(identifier, kind_of(outcome), status);
    if (!event)
        return;
    if (outcome == CONNECTION_ANSWERED)
        describe_rep(event, message, connection);
    else if (outcome == CONNECTION_REJECTED && message)
        put_private(event, message, 0);
    else if (outcome == CONNECTION_UNREACHABLE)
        event->route = identifier->route;
    event_push(event);
}

static void happened(struct connection *connection, enum connection_outcome outcome, int status,
                     const struct cm_message *message)
{
    struct connect_session *session = container_of(connection, struct connect_session, connection);
    struct identifier *identifier = session->session.identifier;
    if (outcome == CONNECTION_ANSWERED)
        session_know_remote(&session->session, connection->remote.guid, connection->remote.communication_id,
                            connection->remote.qpn);
    if (!may_happen(identifier, outcome))
        return;
    if (outcome == CONNECTION_DISCONNECTED)
        identifier->state = IDENTIFIER_DISCONNECT;
    if (identifier->named)
        tell(identifier, outcome, status, message, connection);
}

static void noted(const struct connection *connection, enum event event, uint64_t a, uint64_t b)
{
    const struct connect_session *session = container_of(connection, struct connect_session, connection);
    struct manager *manager = session->session.manager;
    identifier_note(session->session.identifier, event, (uintptr_t)connection_state_name((enum connection_state)a),
                    (uintptr_t)connection_state_name((enum connection_state)b));
    if (manager && manager->operations->event)
        manager->operations->event(manager, connection->local.communication_id, event, a, b);
}

static nanos connect_linger(const struct connection *connection)
{
    struct manager *manager = container_of(connection, struct connect_session, connection)->session.manager;
    return manager && manager->operations->linger ? manager->operations->linger(manager) : 0;
}

static const struct connection_operations outcomes = {.outcome = happened, .event = noted, .linger = connect_linger};

/* --- the session */

SESSION_OPERATIONS(connect, connection)

static struct connection *open_connection(struct identifier *identifier, const struct cm_route *route)
{
    struct connection *connection = open_session(identifier, route);
    if (!connection)
        return NULL;
    connection_initialize(connection, &outcomes);
    connection->agent = identifier->manager->agent;
    connection->target_ack_delay = route->from.ack_delay;
    connection->local = (struct connection_end){.communication_id = (uint32_t)identifier->session->by_local.key,
                                                .psn = identifier->psn,
                                                .guid = route->from.guid};
    return connection;
}

/* --- the active side */

static struct cm_path make_path(const struct cm_route *route)
{
    bool routed = route->hop_limit > 1;
    struct cm_path path = {
        .local_lid = PERMISSIVE_LID,
        .remote_lid = routed ? PERMISSIVE_LID : 0,
        .flow_label = route->flow_label,
        .traffic_class = route->traffic_class,
        .hop_limit = route->hop_limit,
        .subnet_local = !routed,
        .ack_timeout = connection_ack_timeout(route->from.ack_delay, route->lifetime),
    };
    memcpy(path.local_gid, route->from.gid, sizeof path.local_gid);
    memcpy(path.remote_gid, route->gid, sizeof path.remote_gid);
    return path;
}

static void put_transport(struct cm_req *req, const struct qp_type *type, const struct cm_parameters *parameters)
{
    req->transport = type->transport;
    req->extended_transport = type->extended;
    if (type->extended == CM_EXTENDED_XRC)
        return; /* XRC's REQ has none of the fields below */
    req->responder_resources = parameters->responder_resources;
    req->retry_count = parameters->retry_count;
    req->rnr_retry_count = parameters->rnr_retry_count;
    req->srq = parameters->srq;
}

static struct cm_req make_req(const struct identifier *identifier, const struct cm_parameters *parameters)
{
    struct cm_req req = {.service = identifier_service(identifier, &identifier->destination),
                         .guid = identifier->route.from.guid,
                         .qpn = parameters->qpn & CM_QPN_MASK,
                         .initiator_depth = parameters->initiator_depth,
                         .remote_response_timeout = RESPONSE_TIMEOUT,
                         .flow_control = parameters->flow_control,
                         .starting_psn = identifier->psn,
                         .local_response_timeout = RESPONSE_TIMEOUT,
                         .pkey = PKEY,
                         .mtu = identifier->route.from.mtu,
                         .max_cm_retries = identifier->manager->retries,
                         .primary = make_path(&identifier->route)};
    put_transport(&req, qp_type_find(identifier->qp_type), parameters);
    return req;
}

static int start_connection(struct identifier *identifier, const struct cm_parameters *parameters,
                            const struct cm_ece *ece, nanos now)
{
    struct cm_parameters whole = addressing_put(identifier, parameters);
    struct cm_req req = make_req(identifier, parameters);
    struct connection *connection = open_connection(identifier, &identifier->route);
    if (!connection)
        return ENOMEM;
    connection->transaction = (uint64_t)connection->agent << 32 | connection->local.communication_id;
    connection->ece = *ece;
    connection_request(connection, &req, &whole, now);
    session_settle(identifier->session);
    return 0;
}

static int confirm_reply(struct identifier *identifier, nanos now)
{
    int error = connection_confirm(connect_of(identifier->session), now);
    session_settle(identifier->session);
    return error;
}

/* --- the passive side */

static void describe_req(struct cm_event *event, const struct cm_message *message, unsigned skip)
{
    const struct cm_req *req = &message->req;
    event->parameters.qpn = req->qpn;
    event->parameters.responder_resources = req->initiator_depth;
    event->parameters.initiator_depth = req->responder_resources;
    event->parameters.flow_control = req->flow_control;
    event->parameters.retry_count = req->retry_count;
    event->parameters.rnr_retry_count = req->rnr_retry_count;
    event->parameters.srq = req->srq;
    event->ece = (struct cm_ece){.vendor = req->vendor, .options = message->modifier};
    put_private(event, message, skip);
}

static struct cm_event *make_event(struct identifier *listener, struct identifier *identifier,
                                   const struct cm_message *message, const struct cm_ip *ip)
{
    struct cm_event *event = identifier_request_event(listener, identifier);
    if (event)
        describe_req(event, message, ip ? CM_IP_BYTES : 0);
    return event;
}

/* Without memory nothing changes, and the peer asks again. */
bool connect_requested(struct identifier *listener, const struct cm_message *message, const struct cm_ip *ip,
                       const struct cm_route *route, nanos now)
{
    struct manager *manager = listener->manager;
    struct identifier *identifier = identifier_requested(listener, qp_type_of_peer(&message->req));
    if (!identifier)
        return false;
    struct cm_event *event = make_event(listener, identifier, message, ip);
    struct connection *connection = event ? open_connection(identifier, route) : NULL;
    if (!connection) {
        if (event)
            manager->operations->release(manager, event);
        identifier_destroy(identifier, 0);
        return false;
    }
    addressing_take(identifier, listener, ip, route);
    connection_requested(connection, message, now);
    session_know_remote(identifier->session, message->req.guid, message->local_id, message->req.qpn);
    event_push(event);
    session_settle(identifier->session);
    return true;
}

static int accept_request(struct identifier *identifier, const struct cm_parameters *parameters,
                          const struct cm_ece *ece, nanos now)
{
    struct connection *connection = connect_of(identifier->session);
    connection->ece = *ece;
    int error = connection_accept(connection, parameters, now);
    session_settle(identifier->session);
    return error;
}

/* --- both sides */

static int reject_peer(struct identifier *identifier, uint16_t reason, const void *private_data, uint8_t length,
                       nanos now)
{
    int error = connection_reject(connect_of(identifier->session), reason, private_data, length, now);
    session_settle(identifier->session);
    return error;
}

static const char *state_of(const struct session *session)
{
    return connection_state_name(connect_of(session)->state);
}

static uint16_t rejected(const struct session *session)
{
    return connect_of(session)->peers_reason;
}

static void disconnect_peer(struct identifier *identifier, nanos now)
{
    connection_disconnect(connect_of(identifier->session), now);
    session_settle(identifier->session);
}

static int establish_early(struct identifier *identifier, nanos now)
{
    int error = connection_establish(connect_of(identifier->session), now);
    session_settle(identifier->session);
    return error;
}

const struct service_operations connect_service = {.request_private = REQ_PRIVATE,
                                                   .accept_private = REP_PRIVATE,
                                                   .reject_private = REJ_PRIVATE,
                                                   .state = state_of,
                                                   .rejected = rejected,
                                                   .connect = start_connection,
                                                   .accept = accept_request,
                                                   .confirm = confirm_reply,
                                                   .reject = reject_peer,
                                                   .disconnect = disconnect_peer,
                                                   .establish = establish_early};
