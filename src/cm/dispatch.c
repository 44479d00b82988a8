#include "cm/dispatch.h"

#include "base/container.h"
#include "cm/connect.h"
#include "cm/queue_pair/qp_type.h"
#include "cm/resolve.h"

/* --- answers without a session */

static bool answer(const struct dispatch_datagram *to, struct dispatch_datagram *reply, enum cm_attribute attribute)
{
    reply->route = to->route;
    reply->message = (struct cm_message){.attribute = attribute,
                                         .transaction = to->message.transaction,
                                         .local_id = to->message.remote_id,
                                         .remote_id = to->message.local_id};
    return true;
}

/* Notes a message among the identifier's last events, which tools show. */
static void note_message(struct identifier *identifier, enum event event, const struct cm_message *message)
{
    identifier_note(identifier, event, (uintptr_t)cm_name(message->attribute),
                    message->attribute == CM_REJ ? message->rej.reason : 0);
}

/* Notes the request that has opened this session. */
static void note_request(const struct session *session, const struct cm_message *message)
{
    if (session)
        note_message(session->identifier, EVENT_CM_ARRIVED, message);
}

static bool dispatch_drop(struct manager *manager, enum reason reason)
{
    manager->operations->drop(manager, reason, NULL, NULL);
    return false;
}

static bool reject(const struct dispatch_datagram *to, struct dispatch_datagram *reply, enum cm_about about,
                   uint16_t reason)
{
    answer(to, reply, CM_REJ);
    reply->message.rej = (struct cm_rej){.about = (uint8_t)about, .reason = reason};
    return true;
}

bool dispatch_reject(const struct dispatch_datagram *request, struct dispatch_datagram *reply, uint16_t reason,
                     const void *data, size_t size)
{
    size_t most = cm_private_size(CM_REJ);
    reject(request, reply, CM_ABOUT_REQ, reason);
    memcpy(reply->message.private_data, data, size < most ? size : most);
    return true;
}

/* --- requests */

static bool covers(const struct identifier *listener, uint64_t service)
{
    uint64_t mask = listener->source.family == AF_IB ? listener->source.service_mask : UINT64_MAX;
    return !((identifier_service(listener, &listener->source) ^ service) & mask);
}

static bool is_at(const struct identifier *listener, const struct cm_port *port)
{
    return !listener->has_port || listener->port.device == port->device;
}

/* A request without IP addressing is for listeners of AF_IB, and for no others. */
static bool hears(const struct identifier *listener, const struct cm_ip *ip)
{
    const struct cm_address *address = &listener->source;
    if (!ip || address->family == AF_IB)
        return !ip == (address->family == AF_IB);
    uint16_t family = ip->version == 4 ? AF_INET : AF_INET6;
    if (cm_is_any(address))
        return address->family == family || (address->family == AF_INET6 && !listener->options.only_family);
    unsigned from = family == AF_INET ? 12 : 0;
    return address->family == family && !memcmp(address->gid + from, ip->destination + from, 16 - from);
}

static bool takes(const struct identifier *listener, uint8_t qp_type)
{
    return !listener->qp_type || listener->qp_type == qp_type;
}

/* Finds the listener of a request; NULL: the request must be refused with *reason. */
static struct identifier *find_listener(const struct manager *manager, const struct dispatch_datagram *request,
                                        uint64_t service, uint8_t qp_type, const struct cm_ip *ip, uint16_t *reason)
{
    struct identifier *listener;
    *reason = CM_REJECT_INVALID_SERVICE;
    LIST_FOREACH (listener, &manager->listeners, listening) {
        if (!covers(listener, service) || !is_at(listener, &request->route.from))
            continue;
        *reason = CM_REJECT_CONSUMER;
        if (hears(listener, ip) && takes(listener, qp_type))
            return listener;
    }
    return NULL;
}

/* All messages of one exchange are from one address: the packet's, not one in the message. */
static bool came_from_peer(const struct session *session, const struct dispatch_datagram *datagram)
{
    return !memcmp(session->route.gid, datagram->route.gid, sizeof session->route.gid);
}

/* Finds another connection with this queue pair of the peer's host: one of the two is from before that host's restart
 * (IBA 12.9.8.3.1). */
static struct session *find_stale(const struct manager *manager, uint64_t guid, uint32_t qpn,
                                  const struct dispatch_datagram *datagram, const struct session *except)
{
    struct session *session = NULL;
    while ((session = manager_find_remote_qp(manager, guid, qpn, session))) {
        const struct connection *connection = connect_of(session); /* resolutions name no queue pair */
        bool alive = connection->state != CONNECTION_TIMEWAIT && connection->state != CONNECTION_IDLE;
        bool same = connection->remote.guid == guid && connection->remote.qpn == qpn;
        if (session != except && alive && same && came_from_peer(session, datagram))
            return session;
    }
    return NULL;
}

static void end_stale(struct session *session, nanos now)
{
    connection_disconnect(connect_of(session), now);
    session_settle(session);
}

/* The connection that a REQ with this communication ID has opened. */
static struct session *find_requested(const struct manager *manager, uint64_t guid,
                                      const struct dispatch_datagram *datagram)
{
    uint32_t id = datagram->message.local_id;
    struct session *session = NULL;
    while ((session = manager_find_remote(manager, guid, id, session))) {
        const struct connection *connection = connect_of(session);
        if (connection && connection->remote.guid == guid && connection->remote.communication_id == id &&
            came_from_peer(session, datagram))
            return session;
    }
    return NULL;
}

static void pass_to(struct session *session, const struct cm_message *message, nanos now)
{
    note_message(session->identifier, EVENT_CM_ARRIVED, message);
    if (!session->operations->receive(session, message, now))
        session->manager->operations->drop(session->manager, REASON_CM_UNEXPECTED, session->identifier, message);
    session_settle(session);
}

static const struct cm_ip *read_addressing(const struct cm_message *message, struct cm_ip *ip, bool *wrong)
{
    enum cm_ip_fault fault = cm_ip_decode(message->private_data, ip);
    *wrong = fault == CM_IP_VERSION;
    return fault == CM_IP_FINE ? ip : NULL;
}

static bool open_request(struct manager *manager, const struct dispatch_datagram *request,
                         struct dispatch_datagram *reply, nanos now)
{
    const struct cm_req *req = &request->message.req;
    struct cm_ip ip;
    uint16_t reason;
    bool wrong;
    const struct cm_ip *addressing = read_addressing(&request->message, &ip, &wrong);
    if (wrong)
        return dispatch_drop(manager, REASON_CM_ADDRESSING);
    struct identifier *listener =
        find_listener(manager, request, req->service, qp_type_of_peer(req), addressing, &reason);
    if (!listener)
        return reject(request, reply, CM_ABOUT_REQ, reason);
    if (listener->account.requests >= listener->backlog) {
        identifier_note(listener, EVENT_CM_DROPPED, REASON_CM_BACKLOG, 0);
        return dispatch_drop(manager, REASON_CM_BACKLOG); /* for a repeat there may be room */
    }
    struct cm_route route = request->route;
    route.flow_label = req->primary.flow_label;
    route.traffic_class = req->primary.traffic_class;
    route.hop_limit = req->primary.hop_limit;
    if (connect_requested(listener, &request->message, addressing, &route, now))
        note_request(find_requested(manager, req->guid, request), &request->message);
    return false;
}

static bool receive_req(struct manager *manager, const struct dispatch_datagram *request,
                        struct dispatch_datagram *reply, nanos now)
{
    const struct cm_message *message = &request->message;
    struct session *known = find_requested(manager, message->req.guid, request);
    if (known) {
        pass_to(known, message, now);
        return false;
    }
    struct session *stale = find_stale(manager, message->req.guid, message->req.qpn, request, NULL);
    if (!stale)
        return open_request(manager, request, reply, now);
    end_stale(stale, now);
    return reject(request, reply, CM_ABOUT_REQ, CM_REJECT_STALE);
}

/* --- requests of datagram services */

static bool refuse_resolution(const struct dispatch_datagram *request, struct dispatch_datagram *reply, uint16_t reason)
{
    answer(request, reply, CM_SIDR_REP);
    reply->message.sidr_rep =
        (struct cm_sidr_rep){.status = reason == CM_REJECT_INVALID_SERVICE ? CM_SIDR_UNSUPPORTED : CM_SIDR_REJECTED,
                             .service = request->message.sidr_req.service};
    return true;
}

static struct session *find_resolution(const struct manager *manager, const struct dispatch_datagram *request)
{
    struct session *session = NULL;
    while ((session = manager_find_request(manager, request->route.gid, request->message.local_id, session))) {
        const struct resolution *resolution = resolve_of(session);
        if (resolution && resolution->request == request->message.local_id && came_from_peer(session, request))
            return session;
    }
    return NULL;
}

static bool open_resolution(struct manager *manager, const struct dispatch_datagram *request,
                            struct dispatch_datagram *reply)
{
    struct cm_ip ip;
    uint16_t reason;
    bool wrong;
    const struct cm_ip *addressing = read_addressing(&request->message, &ip, &wrong);
    if (wrong)
        return dispatch_drop(manager, REASON_CM_ADDRESSING);
    struct identifier *listener =
        find_listener(manager, request, request->message.sidr_req.service, QP_TYPE_DATAGRAM, addressing, &reason);
    if (!listener)
        return refuse_resolution(request, reply, reason);
    if (listener->account.requests >= listener->backlog)
        return refuse_resolution(request, reply, CM_REJECT_CONSUMER);
    if (resolve_requested(listener, &request->message, addressing, &request->route))
        note_request(find_resolution(manager, request), &request->message);
    return false;
}

static bool receive_sidr_req(struct manager *manager, const struct dispatch_datagram *request,
                             struct dispatch_datagram *reply, nanos now)
{
    struct session *known = find_resolution(manager, request);
    if (!known)
        return open_resolution(manager, request, reply);
    pass_to(known, &request->message, now);
    return false;
}

/* --- replies */

/* A peer that has given up its request knows no communication ID of ours; its REJ has its GUID. */
static struct session *find_given_up(const struct manager *manager, const struct dispatch_datagram *datagram)
{
    const struct cm_rej *rej = &datagram->message.rej;
    uint64_t guid = 0;
    if (datagram->message.attribute != CM_REJ || rej->reason != CM_REJECT_TIMEOUT ||
        rej->information_length < sizeof guid)
        return NULL;
    for (unsigned i = 0; i < sizeof guid; i++)
        guid = guid << 8 | rej->information[i];
    return find_requested(manager, guid, datagram);
}

static struct session *find_session(const struct manager *manager, const struct dispatch_datagram *datagram)
{
    struct session *session = manager_find_local(manager, datagram->message.remote_id);
    if (session && came_from_peer(session, datagram))
        return session;
    return find_given_up(manager, datagram);
}

/* Finds another connection with the queue pair that this REP is from. */
static struct session *find_stale_of_rep(const struct manager *manager, const struct session *session,
                                         const struct dispatch_datagram *datagram)
{
    const struct cm_rep *rep = &datagram->message.rep;
    const struct connection *connection = connect_of(session);
    if (!connection || connection->state != CONNECTION_REQ_SENT)
        return NULL;
    return find_stale(manager, rep->guid, connection->extended ? rep->eecn : rep->qpn, datagram, session);
}

static bool is_of_peer(const struct session *session, const struct cm_message *message)
{
    const struct connection *connection = connect_of(session);
    return connection && connection->remote.communication_id == message->local_id;
}

static enum reason reason_unknown(const struct manager *manager, const struct dispatch_datagram *datagram)
{
    struct session *session = manager_find_local(manager, datagram->message.remote_id);
    return session && !came_from_peer(session, datagram) ? REASON_CM_STRANGER : REASON_CM_UNKNOWN;
}

static bool receive_reply(struct manager *manager, const struct dispatch_datagram *datagram,
                          struct dispatch_datagram *reply, nanos now)
{
    const struct cm_message *message = &datagram->message;
    struct session *session = find_session(manager, datagram);
    if (!session || (message->attribute == CM_DREQ && !is_of_peer(session, message)))
        dispatch_drop(manager, reason_unknown(manager, datagram));
    if (message->attribute == CM_DREQ && !is_of_peer(session, message))
        return answer(datagram, reply, CM_DREP); /* so that the peer stops asking */
    if (!session)
        return false;
    struct session *stale = message->attribute == CM_REP ? find_stale_of_rep(manager, session, datagram) : NULL;
    if (stale) {
        end_stale(stale, now);
        return reject(datagram, reply, CM_ABOUT_REP, CM_REJECT_STALE);
    }
    session->route.neighbor = datagram->route.neighbor;
    pass_to(session, message, now);
    return false;
}

/* --- in and out */

bool dispatch_receive(struct manager *manager, const struct dispatch_datagram *datagram,
                      struct dispatch_datagram *reply, nanos now)
{
    switch (datagram->message.attribute) {
    case CM_REQ:
        return receive_req(manager, datagram, reply, now);
    case CM_SIDR_REQ:
        return receive_sidr_req(manager, datagram, reply, now);
    case CM_LAP:
    case CM_APR:
        return dispatch_drop(manager, REASON_CM_UNEXPECTED);
    default:
        return receive_reply(manager, datagram, reply, now);
    }
}

bool dispatch_transmit(struct manager *manager, struct dispatch_datagram *to)
{
    struct session *session;
    while ((session = TAILQ_FIRST(&manager->output))) {
        if (session->operations->transmit(session, &to->message)) {
            to->route = session->route;
            note_message(session->identifier, EVENT_CM_SENT, &to->message);
            return true;
        }
        TAILQ_REMOVE(&manager->output, session, output);
        session->has_output = false;
        if (session->operations->is_finished(session))
            session_settle(session);
    }
    return false;
}

bool dispatch_knows(const struct manager *manager, const uint8_t gid[16])
{
    for (uint32_t i = 0; i <= manager->local.mask; i++)
        for (struct hash_entry *entry = manager->local.buckets[i]; entry; entry = entry->next)
            if (!memcmp(container_of(entry, struct session, by_local)->route.gid, gid, 16))
                return true;
    return false;
}

nanos dispatch_deadline(const struct manager *manager)
{
    return timers_next(&manager->timers);
}

void dispatch_expire(struct manager *manager, nanos now)
{
    timers_expire(&manager->timers, now);
}

/* Returns true if no program has fetched the request that made the identifier. */
static bool is_unknown(const struct identifier *identifier)
{
    return identifier && !identifier->named && identifier->account.queued;
}

static void bereave(struct session *session, nanos now)
{
    if (is_unknown(session->identifier))
        identifier_destroy(session->identifier, now);
    else {
        identifier_note(session->identifier, EVENT_PARTNER_ENDED, 0, 0);
        session->operations->bereave(session, now);
        session_settle(session);
    }
}

void dispatch_bereave(struct manager *manager, uint32_t neighbor, nanos now)
{
    for (uint32_t i = 0; i <= manager->local.mask; i++)
        for (struct hash_entry *entry = manager->local.buckets[i], *next; entry; entry = next) {
            struct session *session = container_of(entry, struct session, by_local);
            next = entry->next;
            if (session->route.neighbor == neighbor)
                bereave(session, now);
        }
}
