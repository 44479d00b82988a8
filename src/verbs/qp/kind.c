#include "verbs/qp/kind.h"

#include <stddef.h>
#include <string.h>

static const struct qp_kind *const no_kinds[] = {NULL};
const struct qp_kind *const *qp_kinds = no_kinds;

const struct qp_kind *qp_kind_find(enum ibv_qp_type type)
{
    for (const struct qp_kind *const *kind = qp_kinds; *kind; kind++)
        if ((*kind)->type == type && !qp_type_is_of_driver(type))
            return *kind;
    return NULL;
}

const struct qp_kind *qp_kind_find_of_driver(const char *name)
{
    for (const struct qp_kind *const *kind = qp_kinds; *kind; kind++)
        if (qp_type_is_of_driver((*kind)->type) && !strcmp((*kind)->name, name))
            return *kind;
    return NULL;
}
