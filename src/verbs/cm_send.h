/* Messages of the connection manager on their way out. */
#ifndef VERBS_CM_SEND_H
#define VERBS_CM_SEND_H

#include "cm/dispatch.h"
#include "verbs/object.h"

/* Sends it, or drops what leads nowhere. False: there is no room now, nothing has happened. */
bool cm_send(struct process *, const struct dispatch_datagram *);

#endif
