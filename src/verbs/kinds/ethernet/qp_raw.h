/* The particulars of raw packet queue pairs (kinds.h: raw_kind). They need no privilege, as nothing leaves the host:
 * the frames of a user reach only processes of that user. */
#pragma once

#include "base/nanos.h"

struct qp;

/* Sends frames as long as the links have room. Under qp->lock. */
void qp_raw_transmit(struct qp *, nanos now);
