/* Commands of identifiers that send messages to a peer. Their effect depends on the service: connections (connect.h),
 * or datagrams (resolve.h). `now` and what they return are as in identifier.h. */
#pragma once

#include "base/container.h"
#include "cm/identifier.h"

struct service_operations {
    /* The most bytes of private data, which callers of the functions respect: in a request, where a header of IP
     * addressing counts; in accepting; in rejecting. */
    uint8_t request_private, accept_private, reject_private;
    const char *(*state)(const struct session *); /* the state's name */
    /* The reason of the REJ by which the peer ended the session; 0: no REJ. NULL: the service has no REJ. */
    uint16_t (*rejected)(const struct session *);

    /* Return 0; ENOMEM; EINVAL: the session is in another state; EISCONN: it is established. An error changes
     * nothing, and is not logged. */
    int (*connect)(struct identifier *, const struct cm_parameters *, const struct cm_ece *, nanos now);
    int (*accept)(struct identifier *, const struct cm_parameters *, const struct cm_ece *, nanos now);
    int (*confirm)(struct identifier *, nanos now);
    int (*reject)(struct identifier *, uint16_t reason, const void *private_data, uint8_t length, nanos now);
    void (*disconnect)(struct identifier *, nanos now); /* NULL, as `establish`: not in this service */
    int (*establish)(struct identifier *, nanos now);
};

/* Defines the operations of sessions of a service, SERVICE_operations, which call the functions of the session's
 * exchange (EXCHANGE_receive and so on); SERVICE_of, which returns a session's exchange; and open_session, which opens
 * a session for an identifier, or returns NULL without memory. */
#define SESSION_OPERATIONS(service, exchange)                                                                          \
    static struct exchange *exchange_of(const struct session *session)                                                 \
    {                                                                                                                  \
        return &container_of(session, struct service##_session, session)->exchange;                                    \
    }                                                                                                                  \
    static bool receive(struct session *session, const struct cm_message *message, nanos now)                          \
    {                                                                                                                  \
        return exchange##_receive(exchange_of(session), message, now);                                                 \
    }                                                                                                                  \
    static void expire(struct session *session, nanos now)                                                             \
    {                                                                                                                  \
        exchange##_expire(exchange_of(session), now);                                                                  \
    }                                                                                                                  \
    static nanos deadline(const struct session *session)                                                               \
    {                                                                                                                  \
        return exchange_of(session)->deadline;                                                                         \
    }                                                                                                                  \
    static bool transmit(struct session *session, struct cm_message *message)                                          \
    {                                                                                                                  \
        return exchange##_transmit(exchange_of(session), message);                                                     \
    }                                                                                                                  \
    static void bereave(struct session *session, nanos now)                                                            \
    {                                                                                                                  \
        exchange##_bereave(exchange_of(session), now);                                                                 \
    }                                                                                                                  \
    static void abandon(struct session *session, nanos now)                                                            \
    {                                                                                                                  \
        exchange##_abandon(exchange_of(session), now);                                                                 \
    }                                                                                                                  \
    static bool goodbye(const struct session *session, struct cm_message *message)                                     \
    {                                                                                                                  \
        return exchange##_goodbye(exchange_of(session), message);                                                      \
    }                                                                                                                  \
    static bool is_finished(const struct session *session)                                                             \
    {                                                                                                                  \
        return exchange##_is_finished(exchange_of(session));                                                           \
    }                                                                                                                  \
    const struct session_operations service##_operations = {receive, expire,  deadline, transmit,                      \
                                                            bereave, abandon, goodbye,  is_finished};                  \
    struct exchange *service##_of(const struct session *session)                                                       \
    {                                                                                                                  \
        return session && session->operations == &service##_operations ? exchange_of(session) : NULL;                  \
    }                                                                                                                  \
    static struct exchange *open_session(struct identifier *identifier, const struct cm_route *route)                  \
    {                                                                                                                  \
        struct session *session = session_open(identifier->manager, identifier, route,                                 \
                                               sizeof(struct service##_session), &service##_operations);               \
        if (session)                                                                                                   \
            identifier->session = session;                                                                             \
        return service##_of(session);                                                                                  \
    }

int service_connect(struct identifier *, const struct cm_parameters *, const struct cm_ece *, nanos now);

/* Accepts a request; from then on `uid` names the identifier in its events. A failure rejects the peer. */
int service_accept(struct identifier *, uint64_t uid, const struct cm_parameters *, const struct cm_ece *, nanos now);

/* Confirms an active identifier's connection after CONNECT_RESPONSE. A failure rejects the peer. */
int service_confirm(struct identifier *, nanos now);

int service_reject(struct identifier *, uint8_t reason, const void *private_data, uint8_t length, nanos now);
int service_disconnect(struct identifier *, nanos now);

/* Takes an asynchronous event of the program's queue pair: IBV_EVENT_COMM_EST replaces the peer's RTU. */
int service_notify(struct identifier *, enum ibv_event_type, nanos now);
