/* Identifiers of datagram services: their connecting is to resolve a service to a queue pair. */
#ifndef CM_RESOLVE_H
#define CM_RESOLVE_H

#include "cm/resolution.h"
#include "cm/service.h"
#include "wire/cm_ip.h"

extern const struct service_operations resolve_service;

/* Its sessions, which have these operations. */
struct resolve_session {
    struct session session;
    struct resolution resolution;
};
extern const struct session_operations resolve_operations;

/* The resolution that the session is; NULL: it is none. */
struct resolution *resolve_of(const struct session *);

/* A SIDR_REQ for this listener has come, as connect_requested. */
bool resolve_requested(struct identifier *listener, const struct cm_message *, const struct cm_ip *ip,
                       const struct cm_route *route);

#endif
