/* The particulars of raw packet queue pairs (kinds.h: raw_kind). They need no privilege, as nothing leaves the host:
 * the frames of a user reach only processes of that user. */
#ifndef VERBS_KINDS_ETHERNET_QP_RAW_H
#define VERBS_KINDS_ETHERNET_QP_RAW_H

#include "base/nanos.h"

struct qp;

/* Sends frames as long as the links have room. Under qp->lock. */
void qp_raw_transmit(struct qp *, nanos now);

#endif
