/* Waiting for room in a link. */
#pragma once

#include <stdbool.h>

struct link;
struct qp;

/* Returns true if this link has room for a frame. If not, the queue pair transmits again when the link has room. Under
 * qp->lock, between the link's begin and end. */
bool qp_has_room(struct qp *, struct link *);

/* Lets the queue pair transmit in the helper's next round. Under qp->lock. */
void qp_leave_to_helper(struct qp *);
