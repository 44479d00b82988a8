#include "verbs/kinds/kinds.h"

#include <stddef.h>

static const struct srq_kind srq_basic_kind = {.type = IBV_SRQT_BASIC};

void kinds_begin(void)
{
    static const struct qp_kind *const of_queue_pairs[] = {
        &rc_kind, &uc_kind, &ud_kind, &raw_kind, &xrc_send_kind, &xrc_recv_kind, NULL,
    };
    static const struct srq_kind *const of_srqs[] = {&srq_basic_kind, &srq_tags_kind, &srq_xrc_kind, NULL};
    qp_kinds = of_queue_pairs;
    srq_kinds = of_srqs;
}
