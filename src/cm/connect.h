/* Identifiers of connected services: RC, UC and XRC. */
#ifndef CM_CONNECT_H
#define CM_CONNECT_H

#include "cm/connection.h"
#include "cm/service.h"
#include "wire/cm_ip.h"

extern const struct service_operations connect_service;

/* Its sessions, which have these operations. */
struct connect_session {
    struct session session;
    struct connection connection;
};
extern const struct session_operations connect_operations;

/* The connection that the session is; NULL: it is none. */
struct connection *connect_of(const struct session *);

/* A REQ for this listener has come, from the way in `route`; `ip` NULL: without IP addressing. The type of queue pair
 * that it asks for is the listener's, or the listener takes any. False: there is no memory. */
bool connect_requested(struct identifier *listener, const struct cm_message *, const struct cm_ip *ip,
                       const struct cm_route *route, nanos now);

#endif
