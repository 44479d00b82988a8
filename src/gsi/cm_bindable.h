/* Which addresses of the host a program may bind an identifier to. */
#ifndef GSI_CM_BINDABLE_H
#define GSI_CM_BINDABLE_H

#include "cm/address.h"

/* Returns true if an address of the host that is no device's GID is served all the same. Loopback addresses are. Others
 * are where a device is on no network, unless they belong to an interface that a device is on: peers on other hosts
 * would expect an answer there, and get none. Logs why the call is refused when not (events/refusal.h). Under the lock
 * of the connection manager. */
bool cm_bindable(const struct cm_address *);

#endif
