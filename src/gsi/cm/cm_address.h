/* Finds the device that serves an address, and the route to another address, for the connection manager. */
#pragma once

#include "cm/address.h"

/* Do what find_port and find_route of struct manager_operations do. */
int cm_address_port(const struct cm_address *, struct cm_port *);
int cm_address_route(const struct cm_port *, struct cm_address *source, const struct cm_address *destination,
                     struct cm_route *);

/* Returns true if an identifier can be bound to this address: it is one of this host, and a device serves it. */
bool cm_address_is_here(const struct cm_address *);

/* Finds the port of the device that has this GID; false: no device has it. */
bool cm_address_of_gid(const uint8_t gid[16], struct cm_port *);
