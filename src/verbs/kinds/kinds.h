/* All types of queue pairs and of SRQs; see qp/kind.h and queue/srq.h. */
#pragma once

#include "verbs/qp/kind.h"
#include "verbs/queue/srq.h"

#define QP_KIND(name) extern const struct qp_kind name##_kind;
#define SRQ_KIND(name) extern const struct srq_kind name##_kind;
#include "verbs/kinds/kinds.def"

/* Sets the lists qp_kinds and srq_kinds, before a device is opened; a later call changes nothing. */
void kinds_begin(void);
