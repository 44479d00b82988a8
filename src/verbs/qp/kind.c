#include "verbs/qp/kind.h"

#include <stddef.h>

static const struct qp_kind *const no_kinds[] = {NULL};
const struct qp_kind *const *qp_kinds = no_kinds;

const struct qp_kind *qp_kind_find(enum ibv_qp_type type)
{
    for (const struct qp_kind *const *kind = qp_kinds; *kind; kind++)
        if ((*kind)->type == type)
            return *kind;
    return NULL;
}
