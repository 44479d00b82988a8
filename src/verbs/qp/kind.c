#include "verbs/qp/kind.h"

#include <stddef.h>
#include <string.h>

static const struct qp_kind *const no_kinds[] = {NULL};
const struct qp_kind *const *qp_kinds = no_kinds;

const struct qp_kind *qp_kind_find(enum ibv_qp_type type)
{
    for (const struct qp_kind *const *kind = qp_kinds; *kind; kind++)
        if ((*kind)->type == type && (unsigned)type != QP_KIND_OF_DRIVERS)
            return *kind;
    return NULL;
}

const struct qp_kind *qp_kind_find_of_driver(const char *name)
{
    for (const struct qp_kind *const *kind = qp_kinds; *kind; kind++)
        if ((unsigned)(*kind)->type == QP_KIND_OF_DRIVERS && !strcmp((*kind)->name, name))
            return *kind;
    return NULL;
}
