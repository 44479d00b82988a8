/* The addresses of the host that a program may bind an identifier to. */
#pragma once

#include "cm/address.h"

/* Returns true if an address of the host that is not a device's GID is served all the same. A loopback address always
 * is. Another address is served if some device is on no network, unless the address belongs to the interface of a
 * device: peers on other hosts would expect an answer there in vain. If false, logs why the call is refused
 * (events/refusal.h). Under the connection manager's lock. */
bool cm_bindable(const struct cm_address *);
