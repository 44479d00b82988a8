/* The ends of single messages of SRD, for the story of their queue pair. Under qp->lock. */
#pragma once

#include "transport/owner.h"

struct qp;

/* Notes that a message failed. Work that is flushed as the queue pair is in the error state is only counted. */
void qp_messages_failed(struct qp *, const struct send_wqe *, enum ibv_wc_status, enum reason);

/* Notes a packet that was dropped, if its sender learns that its message was refused. */
void qp_messages_dropped(struct qp *, const struct packet *, enum reason);

/* The function `refused` of struct owner_operations. */
void qp_owner_refused(struct engine_owner *, const struct packet *, enum reason);
