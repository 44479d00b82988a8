#include "cm/identifier.h"

#include <errno.h>

#include "base/container.h"
#include "cm/queue_pair/qp_type.h"

enum { PSN_BITS = 24, MULTICAST_QPN = 0xffffff, MULTICAST_HOPS = 64 };

const char *identifier_state_name(enum identifier_state state)
{
    static const char *const names[IDENTIFIER_STATES] = {
        [IDENTIFIER_IDLE] = "idle",
        [IDENTIFIER_ADDR_BOUND] = "bound",
        [IDENTIFIER_ADDR_QUERY] = "address query",
        [IDENTIFIER_ADDR_RESOLVED] = "address resolved",
        [IDENTIFIER_ROUTE_QUERY] = "route query",
        [IDENTIFIER_ROUTE_RESOLVED] = "route resolved",
        [IDENTIFIER_CONNECT] = "connect",
        [IDENTIFIER_DISCONNECT] = "disconnect",
        [IDENTIFIER_LISTEN] = "listen",
    };
    return state < IDENTIFIER_STATES ? names[state] : "unknown";
}

/* A membership in a multicast group. It belongs to an identifier and ends with that. */
struct membership {
    struct identifier *identifier;
    struct hash_entry by_number; /* in the table of identifiers, with a key above theirs */
    struct event_account account;
    LIST_ENTRY(membership) siblings;
};

static const uint64_t membership_key = 1ull << 32;

/* --- refusals */

/* The body of a function with parameters `error`, `reason`, `format` and the arguments of the format. */
#define REFUSE(manager, ...)                                                                                           \
    const struct manager_refusal refusal = {.error = error, .reason = reason, __VA_ARGS__};                            \
    va_list values;                                                                                                    \
    va_start(values, format);                                                                                          \
    (manager)->operations->refuse(manager, &refusal, format, values);                                                  \
    va_end(values);                                                                                                    \
    return error

/* Refuses a command that names no identifier. */
__attribute__((format(printf, 4, 5))) static int refuse(struct manager *manager, int error, enum reason reason,
                                                        const char *format, ...)
{
    REFUSE(manager, .identifier = NULL);
}

int identifier_refuse(const struct identifier *identifier, int error, enum reason reason, const char *format, ...)
{
    REFUSE(identifier->manager, .identifier = identifier);
}

int identifier_refuse_usual(const struct identifier *identifier, int error, enum reason reason, const char *format, ...)
{
    REFUSE(identifier->manager, .identifier = identifier, .usual = true);
}

__attribute__((format(printf, 5, 6))) static int refuse_about(const struct identifier *identifier,
                                                              const struct cm_address *address, int error,
                                                              enum reason reason, const char *format, ...)
{
    REFUSE(identifier->manager, .identifier = identifier, .address = address, .usual = true);
}

int identifier_refuse_address(const struct identifier *identifier, int error, enum reason reason, const char *what,
                              const struct cm_address *address)
{
    return refuse_about(identifier, address, error, reason, "%s", what);
}

int identifier_refuse_state(const struct identifier *identifier, const char *wanted)
{
    return identifier_refuse(identifier, EINVAL, identifier->session ? REASON_CM_USED : REASON_CM_STATE,
                             "its state is %s, not %s", identifier_state_name(identifier->state), wanted);
}

int identifier_refuse_connection(const struct identifier *identifier, int error, const char *state, uint16_t rejected)
{
    if (rejected)
        return identifier_refuse(identifier, error, REASON_CM_PEER_REJECTED, "its connection is in state %s, reason %u",
                                 state, rejected);
    return identifier_refuse(identifier, error, REASON_CM_CONNECTION_STATE, "its connection is in state %s", state);
}

/* --- coming and going */

struct identifier *identifier_find(const struct manager *manager, uint32_t number)
{
    struct hash_entry *entry = hash_find(&manager->identifiers, number, NULL);
    return entry ? container_of(entry, struct identifier, by_number) : NULL;
}

struct identifier *identifier_of(const struct manager *manager, const struct hash_entry *entry)
{
    return entry->key >= membership_key ? NULL : identifier_find(manager, (uint32_t)entry->key);
}

/* Writes the type of queue pair that a port space has; if it has several, *qp_type stays the program's choice. */
static int choose_type(struct manager *manager, uint16_t space, uint8_t *qp_type)
{
    switch (space) {
    case CM_SPACE_TCP:
        *qp_type = QP_TYPE_CONNECTED;
        return 0;
    case CM_SPACE_UDP:
    case CM_SPACE_IPOIB:
        *qp_type = QP_TYPE_DATAGRAM;
        return 0;
    case CM_SPACE_IB:
        return 0;
    default:
        return refuse(manager, EINVAL, REASON_CM_PORT_SPACE, "port space 0x%x", space);
    }
}

static struct identifier *add_identifier(struct manager *manager, struct event_queue *queue, uint16_t space,
                                         uint8_t qp_type)
{
    struct identifier *identifier = manager->operations->allocate(manager, sizeof *identifier);
    if (!identifier)
        return NULL;
    *identifier = (struct identifier){.manager = manager,
                                      .account = {.queue = queue},
                                      .space = space,
                                      .qp_type = qp_type,
                                      .psn = (uint32_t)(manager_random(manager) >> (64 - PSN_BITS))};
    while (identifier_find(manager, manager->next_number))
        manager->next_number++;
    hash_add(&manager->identifiers, &identifier->by_number, manager->next_number++);
    return identifier;
}

int identifier_create(struct manager *manager, struct event_queue *queue, uint64_t uid, uint16_t space, uint8_t qp_type,
                      struct identifier **to)
{
    int error = choose_type(manager, space, &qp_type);
    if (error)
        return error;
    struct identifier *identifier = add_identifier(manager, queue, space, qp_type);
    if (!identifier)
        return ENOMEM;
    identifier->uid = uid;
    identifier->named = true;
    *to = identifier;
    return 0;
}

struct identifier *identifier_requested(struct identifier *listener, uint8_t qp_type)
{
    struct identifier *identifier =
        add_identifier(listener->manager, listener->account.queue, listener->space, qp_type);
    if (identifier)
        identifier->state = IDENTIFIER_CONNECT;
    return identifier;
}

static void unbind(struct identifier *identifier)
{
    if (identifier->has_reservation)
        identifier->manager->operations->release_port(identifier->manager, identifier);
    identifier->has_reservation = identifier->has_port = false;
    identifier->source = identifier->destination = (struct cm_address){0};
    identifier->state = IDENTIFIER_IDLE;
}

/* Purges events, and destroys the identifiers of requests among them, which no program will ever get. */
static void purge_events(struct identifier *identifier, nanos now)
{
    struct cm_event *event;
    while ((event = event_purge(&identifier->account))) {
        struct event_account *requested = event->requested;
        identifier->manager->operations->release(identifier->manager, event);
        if (requested && requested != &identifier->account)
            identifier_destroy(container_of(requested, struct identifier, account), now);
    }
}

static void forget(struct membership *membership)
{
    struct manager *manager = membership->identifier->manager;
    LIST_REMOVE(membership, siblings);
    hash_remove(&membership->by_number);
    manager->operations->release(manager, membership);
}

static void forget_memberships(struct identifier *identifier)
{
    while (!LIST_EMPTY(&identifier->memberships))
        forget(LIST_FIRST(&identifier->memberships));
}

uint32_t identifier_destroy(struct identifier *identifier, nanos now)
{
    struct manager *manager = identifier->manager;
    struct session *session = identifier->session;
    if (identifier->state == IDENTIFIER_LISTEN)
        LIST_REMOVE(identifier, listening);
    purge_events(identifier, now);
    if (session && !identifier->named)
        identifier_note(identifier, EVENT_CM_ABANDONED, 0, 0);
    if (session) {
        session->identifier = NULL;
        session->operations->abandon(session, now);
        session_settle(session);
    }
    forget_memberships(identifier);
    timer_stop(&manager->timers, &identifier->query.timer);
    unbind(identifier);
    hash_remove(&identifier->by_number);
    uint32_t fetched = identifier->account.fetched;
    if (identifier->told)
        manager->operations->release(manager, identifier->told);
    manager->operations->release(manager, identifier);
    return fetched;
}

static struct identifier *find_of_queue(const struct hash_entry *entry, const struct event_queue *queue)
{
    for (; entry; entry = entry->next) {
        struct identifier *identifier = container_of(entry, struct identifier, by_number);
        if (entry->key >= membership_key)
            continue;
        if (!queue || identifier->account.queue == queue)
            return identifier;
    }
    return NULL;
}

/* Destroying an identifier may destroy others: those of requests that no program has fetched. */
void identifiers_destroy(struct manager *manager, struct event_queue *queue, nanos now)
{
    struct identifier *identifier;
    for (uint32_t i = 0; i <= manager->identifiers.mask; i++)
        while ((identifier = find_of_queue(manager->identifiers.buckets[i], queue)))
            identifier_destroy(identifier, now);
}

/* Identifiers that no program has accepted yet get no event: no program knows them. */
static void tell_of_device(struct hash_entry *entry, unsigned device, enum cm_event_kind kind)
{
    struct identifier *identifier = container_of(entry, struct identifier, by_number);
    if (entry->key >= membership_key || !identifier->has_port || identifier->port.device != device)
        return;
    identifier->removed |= kind == CM_DEVICE_REMOVAL;
    if (identifier->named)
        identifier_tell(identifier, kind, 0);
}

void identifiers_event_of_device(struct manager *manager, unsigned device, enum cm_event_kind kind)
{
    for (uint32_t i = 0; i <= manager->identifiers.mask; i++)
        for (struct hash_entry *entry = manager->identifiers.buckets[i]; entry; entry = entry->next)
            tell_of_device(entry, device, kind);
}

/* --- events */

void identifier_note(struct identifier *identifier, enum event event, uint64_t a, uint64_t b)
{
    if (identifier && identifier->manager->operations->happened)
        identifier->manager->operations->happened(identifier->manager, identifier, event, a, b);
}

void identifier_fetched(const struct cm_event *event)
{
    struct identifier *identifier = container_of(event->account, struct identifier, account);
    identifier_note(identifier, EVENT_CM_EVENT_FETCHED, event->kind, (uint64_t)event->status);
    if (event->requested)
        identifier_note(container_of(event->requested, struct identifier, account), EVENT_CM_EVENT_FETCHED, event->kind,
                        (uint64_t)event->status);
}

struct cm_event *identifier_event(struct identifier *identifier, enum cm_event_kind kind, int status)
{
    struct cm_event *event = identifier->manager->operations->allocate(identifier->manager, sizeof *event);
    if (event)
        *event = (struct cm_event){.account = &identifier->account,
                                   .uid = identifier->uid,
                                   .number = identifier_number(identifier),
                                   .kind = kind,
                                   .status = status,
                                   .datagram = qp_type_find(identifier->qp_type)->datagram};
    if (event)
        identifier_note(identifier, EVENT_CM_EVENT, kind, (uint64_t)status);
    return event;
}

struct cm_event *identifier_request_event(struct identifier *listener, struct identifier *requested)
{
    struct cm_event *event = identifier_event(listener, CM_CONNECT_REQUEST, 0);
    if (!event)
        return NULL;
    identifier_note(requested, EVENT_CM_EVENT, CM_CONNECT_REQUEST, 0);
    event->number = identifier_number(requested);
    event->requested = &requested->account;
    event->datagram = qp_type_find(requested->qp_type)->datagram;
    return event;
}

void identifier_tell(struct identifier *identifier, enum cm_event_kind kind, int status)
{
    struct cm_event *event = identifier_event(identifier, kind, status);
    if (event)
        event_push(event);
}

/* --- addresses */

static int find_port(struct identifier *identifier, const struct cm_address *address)
{
    struct manager *manager = identifier->manager;
    if (cm_is_link_local(address) && address->family == AF_INET6 && !address->scope)
        return identifier_refuse(identifier, EINVAL, REASON_CM_SCOPE, "sin6_scope_id is 0");
    if (cm_is_any(address))
        return 0;
    int error = manager->operations->find_port(manager, address, &identifier->port);
    identifier->has_port = !error && identifier->port.device != CM_NOWHERE;
    return error;
}

static int reserve(struct identifier *identifier)
{
    struct manager *manager = identifier->manager;
    if (!identifier->options.only_family_set)
        identifier->options.only_family = identifier->source.family == AF_INET;
    int error = manager->operations->bind_port(manager, identifier);
    identifier->has_reservation = !error;
    return error;
}

/* The port space that a service ID of AF_IB names; 0: not one that this identifier may use. */
static uint16_t space_of(uint16_t own, uint64_t service, uint64_t mask)
{
    static const uint16_t spaces[] = {CM_SPACE_IB, CM_SPACE_TCP, CM_SPACE_UDP};
    for (unsigned i = 0; i < sizeof spaces / sizeof *spaces; i++)
        if ((own == CM_SPACE_IB || own == spaces[i]) && (service & mask) == ((uint64_t)spaces[i] << 16 & mask))
            return spaces[i];
    return 0;
}

static int choose_space(struct identifier *identifier)
{
    enum { PORT_MASK = 0xffff };
    struct cm_address *source = &identifier->source;
    uint64_t service = source->service;
    identifier->port_space = identifier->space;
    if (source->family != AF_IB)
        return 0;
    identifier->port_space = space_of(identifier->space, service & ~(uint64_t)PORT_MASK, source->service_mask);
    source->service = (uint64_t)identifier->port_space << 16 | source->port;
    source->service_mask |= ~(uint64_t)PORT_MASK;
    return identifier->port_space ? 0
                                  : identifier_refuse(identifier, EPROTONOSUPPORT, REASON_CM_SERVICE_ID,
                                                      "service ID 0x%llx with mask 0x%llx, and port space 0x%x",
                                                      (unsigned long long)service,
                                                      (unsigned long long)source->service_mask, identifier->space);
}

static int may_bind(const struct identifier *identifier, const struct cm_address *address)
{
    if (identifier->state != IDENTIFIER_IDLE)
        return identifier_refuse_state(identifier, "idle");
    if (!cm_is_known_family(address->family))
        return identifier_refuse(identifier, EINVAL, REASON_CM_FAMILY, "family %u", address->family);
    if (identifier->space == CM_SPACE_IPOIB)
        return identifier_refuse(identifier, EINVAL, REASON_CM_IPOIB, "port space 0x%x", identifier->space);
    return 0;
}

int identifier_bind(struct identifier *identifier, const struct cm_address *address)
{
    int error = may_bind(identifier, address);
    if (error)
        return error;
    error = find_port(identifier, address);
    identifier->source = *address;
    identifier->destination = (struct cm_address){.family = address->family};
    if (!error)
        error = choose_space(identifier);
    if (!error)
        error = reserve(identifier);
    if (error)
        unbind(identifier);
    else
        identifier->state = IDENTIFIER_ADDR_BOUND;
    return error;
}

uint64_t identifier_service(const struct identifier *identifier, const struct cm_address *address)
{
    if (address->family == AF_IB)
        return address->service;
    return (uint64_t)identifier->space << 16 | address->port;
}

int identifier_listen(struct identifier *identifier, int backlog, nanos now)
{
    struct manager *manager = identifier->manager;
    struct cm_address any = cm_any(AF_INET);
    int error = identifier->state == IDENTIFIER_IDLE ? identifier_bind(identifier, &any) : 0;
    if (error)
        return error;
    if (identifier->state != IDENTIFIER_ADDR_BOUND)
        return identifier_refuse_state(identifier, "bound");
    error = manager->operations->listen_port(manager, identifier);
    if (error)
        return error;
    identifier->options.reuse = false;
    identifier->backlog = backlog > 0 && backlog < CM_BACKLOG_MAX ? (uint32_t)backlog : CM_BACKLOG_MAX;
    identifier->state = IDENTIFIER_LISTEN;
    identifier->listening_since = now;
    LIST_INSERT_HEAD(&manager->listeners, identifier, listening);
    return 0;
}

/* --- multicast */

static struct cm_event *make_join_event(struct membership *membership, uint64_t uid, const struct cm_address *group)
{
    struct identifier *identifier = membership->identifier;
    bool lost = manager_loses(identifier->manager, CM_MULTICAST_ERROR, group);
    struct cm_event *event = lost ? identifier_event(identifier, CM_MULTICAST_ERROR, -ETIMEDOUT)
                                  : identifier_event(identifier, CM_MULTICAST_JOIN, 0);
    if (!event)
        return NULL;
    event->secondary = &membership->account;
    event->uid = uid;
    event->number = (uint32_t)membership->by_number.key;
    if (lost)
        return event;
    event->parameters.qpn = MULTICAST_QPN;
    event->parameters.qkey = CM_QKEY;
    event->has_route = true;
    event->route = (struct cm_route){.from = identifier->port,
                                     .neighbor = CM_NOWHERE,
                                     .hop_limit = MULTICAST_HOPS,
                                     .traffic_class = identifier->options.tos};
    memcpy(event->route.gid, group->gid, 16);
    return event;
}

static struct membership *add_membership(struct identifier *identifier)
{
    struct manager *manager = identifier->manager;
    struct membership *membership = manager->operations->allocate(manager, sizeof *membership);
    if (!membership)
        return NULL;
    membership->identifier = identifier;
    membership->account.queue = identifier->account.queue;
    while (hash_find(&manager->identifiers, membership_key | manager->next_number, NULL))
        manager->next_number++;
    hash_add(&manager->identifiers, &membership->by_number, membership_key | manager->next_number++);
    LIST_INSERT_HEAD(&identifier->memberships, membership, siblings);
    return membership;
}

static int may_join(const struct identifier *identifier)
{
    if (!qp_type_find(identifier->qp_type)->datagram)
        return identifier_refuse(identifier, EINVAL, REASON_GROUP_QP, "its queue pair is of type %u",
                                 identifier->qp_type);
    if (identifier->state != IDENTIFIER_ADDR_BOUND && identifier->state != IDENTIFIER_ADDR_RESOLVED)
        return identifier_refuse_state(identifier, "bound or address resolved");
    if (!identifier->has_port)
        return identifier_refuse(identifier, EINVAL, REASON_CM_UNBOUND, "its state is %s",
                                 identifier_state_name(identifier->state));
    return 0;
}

int identifier_join(struct identifier *identifier, uint64_t uid, const struct cm_address *group, uint32_t *number)
{
    int error = may_join(identifier);
    if (error)
        return error;
    struct membership *membership = add_membership(identifier);
    if (!membership)
        return ENOMEM;
    struct cm_event *event = make_join_event(membership, uid, group);
    if (!event) {
        forget(membership);
        return ENOMEM;
    }
    *number = event->number;
    event_push(event);
    return 0;
}

int identifier_leave(struct manager *manager, const struct event_queue *queue, uint32_t number, uint32_t *fetched)
{
    struct hash_entry *entry = hash_find(&manager->identifiers, membership_key | number, NULL);
    struct membership *membership = entry ? container_of(entry, struct membership, by_number) : NULL;
    struct cm_event *event;
    if (!membership)
        return refuse(manager, ENOENT, REASON_CM_NO_MEMBERSHIP, "membership %u", number);
    if (membership->account.queue != queue)
        return identifier_refuse(membership->identifier, EINVAL, REASON_CM_OTHER_CHANNEL, "membership %u", number);
    while ((event = event_purge(&membership->account)))
        manager->operations->release(manager, event);
    *fetched = membership->account.fetched;
    forget(membership);
    return 0;
}

/* --- queues */

void identifier_migrate(struct identifier *identifier, struct event_queue *queue)
{
    struct membership *membership;
    LIST_FOREACH (membership, &identifier->memberships, siblings)
        membership->account.queue = queue;
    event_move(&identifier->account, queue);
}
