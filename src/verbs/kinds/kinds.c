#include "verbs/kinds/kinds.h"

#include <stddef.h>

const struct qp_kind *const qp_kinds[] = {
    &rc_kind, &uc_kind, &ud_kind, &raw_kind, &xrc_send_kind, &xrc_recv_kind, NULL,
};

static const struct srq_kind srq_basic_kind = {.type = IBV_SRQT_BASIC};

const struct srq_kind *const srq_kinds[] = {&srq_basic_kind, &srq_tags_kind, &srq_xrc_kind, NULL};
