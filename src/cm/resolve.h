/* Identifiers of datagram services: to connect one is to resolve a service to a queue pair. */
#pragma once

#include "cm/resolution.h"
#include "cm/service.h"
#include "wire/cm/cm_ip.h"

extern const struct service_operations resolve_service;

/* A session of the service, whose operations are resolve_operations. */
struct resolve_session {
    struct session session;
    struct resolution resolution;
};
extern const struct session_operations resolve_operations;

/* The resolution of a session; NULL: it is not a resolution. */
struct resolution *resolve_of(const struct session *);

/* Takes a SIDR_REQ for this listener, as connect_requested takes a REQ. */
bool resolve_requested(struct identifier *listener, const struct cm_message *, const struct cm_ip *ip,
                       const struct cm_route *route);
