/* All types of queue pairs and of SRQs; see qp/kind.h and queue/srq.h. */
#ifndef VERBS_KINDS_KINDS_H
#define VERBS_KINDS_KINDS_H

#include "verbs/qp/kind.h"
#include "verbs/queue/srq.h"

extern const struct qp_kind rc_kind, uc_kind, ud_kind, raw_kind, xrc_send_kind, xrc_recv_kind;
extern const struct srq_kind srq_tags_kind, srq_xrc_kind;

/* Sets the lists qp_kinds and srq_kinds of the rooms below, before a device is opened; a later call changes nothing. */
void kinds_begin(void);

#endif
