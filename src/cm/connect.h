/* Identifiers of connected services: RC, UC and XRC. */
#pragma once

#include "cm/connection.h"
#include "cm/service.h"
#include "wire/cm/cm_ip.h"

extern const struct service_operations connect_service;

/* A session of the service, whose operations are connect_operations. */
struct connect_session {
    struct session session;
    struct connection connection;
};
extern const struct session_operations connect_operations;

/* The connection of a session; NULL: it is not a connection. */
struct connection *connect_of(const struct session *);

/* Takes a REQ for this listener, which arrived by `route`; `ip` NULL: it has no IP addressing. The new identifier is of
 * the type of queue pair that the REQ needs. False: no memory. */
bool connect_requested(struct identifier *listener, const struct cm_message *, const struct cm_ip *ip,
                       const struct cm_route *route, nanos now);
