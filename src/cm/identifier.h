/* Identifiers: the objects that programs name by struct rdma_cm_id, and the commands for them, each checked against the
 * state. Pure, as manager.h says. Commands return 0, or the errno that Linux returns, as a positive number; they have
 * logged why, except for ENOMEM. `now` is the time of the call. */
#pragma once

#include <infiniband/verbs.h>

#include "cm/events.h"
#include "cm/manager.h"

enum { /* port spaces, enum rdma_port_space */
       CM_SPACE_IPOIB = 0x0002,
       CM_SPACE_TCP = 0x0106,
       CM_SPACE_UDP = 0x0111,
       CM_SPACE_IB = 0x013f,
};

enum {
    CM_BACKLOG_MAX = 1024,
    CM_QKEY = 0x01234567, /* of datagram services, unless both ends agree on another */
};

enum identifier_state {
    IDENTIFIER_IDLE,
    IDENTIFIER_ADDR_BOUND,
    IDENTIFIER_ADDR_QUERY, /* the route to its destination is not known yet (address/address_query.h) */
    IDENTIFIER_ADDR_RESOLVED,
    IDENTIFIER_ROUTE_QUERY, /* the search for its route gets no answer (address/route_query.h) */
    IDENTIFIER_ROUTE_RESOLVED,
    IDENTIFIER_CONNECT, /* also after a rejection or without an answer, when the identifier is of no more use */
    IDENTIFIER_DISCONNECT,
    IDENTIFIER_LISTEN,
    IDENTIFIER_STATES
};

struct identifier {
    struct manager *manager;
    struct hash_entry by_number; /* the key is the number */
    LIST_ENTRY(identifier) listening;
    struct event_account account;
    uint64_t uid;
    bool named;      /* `uid` is valid: a passive identifier gets a uid when it is accepted, and no events before */
    uint16_t space;  /* CM_SPACE_* */
    uint8_t qp_type; /* enum ibv_qp_type; 0: a listener for any type */
    enum identifier_state state;
    struct cm_address source, destination;
    struct {
        bool reuse, only_family; /* REUSEADDR, AFONLY */
        bool only_family_set, ack_timeout_set;
        uint8_t tos, ack_timeout;
    } options;
    bool has_port, has_route, has_reservation;
    bool removed; /* its device was removed (DEVICE_REMOVAL): service commands fail */
    struct cm_port port;
    struct cm_route route;
    struct {
        struct timer timer; /* set in IDENTIFIER_ADDR_QUERY and IDENTIFIER_ROUTE_QUERY */
        struct cm_address destination;
        nanos until;
        unsigned asked; /* how often the neighbour was asked */
    } query;
    uint16_t port_space;  /* CM_SPACE_* of its port: `space`, or what an AF_IB service ID names */
    uint64_t reservation; /* the owner's number from bind_port */
    uint32_t backlog;
    nanos listening_since;
    uint32_t psn;
    LIST_HEAD(, membership) memberships;
    struct session *session;  /* NULL until the program connects it, or a peer's request makes it */
    struct last_events *told; /* the owner's record of `happened`, released with this; NULL: nothing happened yet */
};

static inline uint32_t identifier_number(const struct identifier *identifier)
{
    return (uint32_t)identifier->by_number.key;
}

const char *identifier_state_name(enum identifier_state);

/* A path to the destination, which the program has chosen. */
struct chosen_path {
    uint8_t source[16], destination[16]; /* GIDs */
    uint32_t flow_label;
    uint8_t hop_limit, traffic_class, mtu, lifetime; /* as in struct cm_route; `hop_limit`, `mtu` 0: not given */
};

/* The identifier of this number, or NULL. */
struct identifier *identifier_find(const struct manager *, uint32_t number);

/* The identifier of an entry of manager->identifiers; NULL: the entry is a membership. */
struct identifier *identifier_of(const struct manager *, const struct hash_entry *);

/* Log why a command is refused, and return `error`. _usual: programs make such a call to learn what they can have.
 * _address: the same, about this address, which is `what` ("the destination"). _state: returns EINVAL, as the state is
 * not `wanted` ("bound"). _connection: the connection is in this state, because of the peer's REJ with reason
 * `rejected` if that is not 0. */
int identifier_refuse(const struct identifier *, int error, enum reason, const char *format, ...)
    __attribute__((__cold__, noinline, format(printf, 4, 5)));
int identifier_refuse_usual(const struct identifier *, int error, enum reason, const char *format, ...)
    __attribute__((__cold__, noinline, format(printf, 4, 5)));
int identifier_refuse_address(const struct identifier *, int error, enum reason, const char *what,
                              const struct cm_address *);
int identifier_refuse_state(const struct identifier *, const char *wanted);
int identifier_refuse_connection(const struct identifier *, int error, const char *state, uint16_t rejected);

/* Creates an identifier. EINVAL: no such port space. ENOMEM: no memory. */
int identifier_create(struct manager *, struct event_queue *, uint64_t uid, uint16_t space, uint8_t qp_type,
                      struct identifier **);

/* Destroys the identifier: ends its connection, and takes its events out of the queue; requests among them are
 * rejected. Returns how many of its events were ever fetched. */
uint32_t identifier_destroy(struct identifier *, nanos now);

/* Destroys all identifiers whose events are for this queue; NULL: all identifiers. */
void identifiers_destroy(struct manager *, struct event_queue *, nanos now);

/* Queues an event for each identifier that is bound to this device: after CM_DEVICE_REMOVAL the identifier can only be
 * destroyed, CM_ADDR_CHANGE changes nothing else. */
void identifiers_event_of_device(struct manager *, unsigned device, enum cm_event_kind);

int identifier_bind(struct identifier *, const struct cm_address *);

/* Takes the program's path for the route, and queues CM_ROUTE_RESOLVED. EINVAL: no address is resolved, or the path has
 * other GIDs than rdma_resolve_addr found. An MTU above the port's counts as the port's. */
int identifier_set_path(struct identifier *, const struct chosen_path *);

int identifier_listen(struct identifier *, int backlog, nanos now);

int identifier_set_tos(struct identifier *, uint8_t);
int identifier_set_reuse(struct identifier *, bool);
int identifier_set_only_family(struct identifier *, bool);
int identifier_set_ack_timeout(struct identifier *, uint8_t);

/* The service ID of this address: of the identifier's source, which it listens at, or of its destination. */
uint64_t identifier_service(const struct identifier *, const struct cm_address *);

/* Makes an event of the identifier, which is not queued yet; NULL: no memory. */
struct cm_event *identifier_event(struct identifier *, enum cm_event_kind, int status);

/* Makes a listener's CM_CONNECT_REQUEST about the new identifier; NULL: no memory. */
struct cm_event *identifier_request_event(struct identifier *listener, struct identifier *requested);

/* Notes an event of events/events.def that happened to the identifier; does nothing if that is NULL. */
void identifier_note(struct identifier *, enum event, uint64_t a, uint64_t b);

/* Notes that the program has fetched an event of the identifier. */
void identifier_fetched(const struct cm_event *);

/* Queues an event without parameters, if there is memory. */
void identifier_tell(struct identifier *, enum cm_event_kind, int status);

/* Joins a multicast group. MULTICAST_JOIN reports that, or MULTICAST_ERROR if the search gets no answer. The membership
 * has a separate number and uid. A member that only sends joins in the same way. EINVAL: no datagram service, no
 * device, not bound, or connected already. */
int identifier_join(struct identifier *, uint64_t uid, const struct cm_address *group, uint32_t *number);

/* Ends a membership, and writes how many of its events were ever fetched. ENOENT: no such membership. EINVAL: it is
 * another queue's. */
int identifier_leave(struct manager *, const struct event_queue *, uint32_t number, uint32_t *fetched);

/* Moves the identifier's events to that queue, also those that wait. */
void identifier_migrate(struct identifier *, struct event_queue *);

/* Makes an identifier for a peer's request, in state CONNECT and without a uid; the listener's queue gets its events.
 * NULL: no memory. */
struct identifier *identifier_requested(struct identifier *listener, uint8_t qp_type);
