/* The port of an adverse process, which is down when the process first opens the device (ADVERSE_LATE_PORT). */
#ifndef VERBS_CONTEXT_DELAYED_PORT_H
#define VERBS_CONTEXT_DELAYED_PORT_H

struct context;

/* Takes down the port of a context that is being opened, and brings it up some time later with IBV_EVENT_PORT_ACTIVE
 * for all contexts of the device. Does nothing for a device that the process has opened before, for a port that a
 * user has taken down, and without the behaviour. Under process->control. */
void delayed_port_begin(struct context *);

#endif
