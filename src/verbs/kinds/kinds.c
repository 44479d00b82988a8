#include "verbs/kinds/kinds.h"

#include <stddef.h>

const struct srq_kind srq_basic_kind = {.type = IBV_SRQT_BASIC};

void kinds_begin(void)
{
    static const struct qp_kind *const of_queue_pairs[] = {
#define QP_KIND(name) &name##_kind,
#include "verbs/kinds/kinds.def"
        NULL,
    };
    static const struct srq_kind *const of_srqs[] = {
#define SRQ_KIND(name) &name##_kind,
#include "verbs/kinds/kinds.def"
        NULL,
    };
    qp_kinds = of_queue_pairs;
    srq_kinds = of_srqs;
}
