/* Receiving over XRC (IBA annex A14): packets name the SRQ, whose PD, receives and CQ then hold.
 *
 * SRQ and queue pair must be of one XRC domain, and of one process: a packet for an SRQ of another process is refused
 * like one for an SRQ that does not exist. */
#ifndef VERBS_QUEUE_XRC_H
#define VERBS_QUEUE_XRC_H

#include "verbs/queue/srq.h"

/* What the engine of a queue pair of type XRC_RECV calls. */
const struct owner_operations *xrc_owner(void);

/* An SRQ of type XRC gets its number. 0 or an errno. Under process->control. */
int xrc_enter_srq(struct srq *);

/* No packet finds it any more. A queue pair with a message into it under way fails. Under process->control. */
void xrc_remove_srq(struct srq *);

#endif
