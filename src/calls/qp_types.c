#include "calls/qp_types.h"

#include <stddef.h>

struct row {
    enum ibv_qp_type type;
    const char *name;
    uint32_t traits;
};

static const struct row rows[] = {
#define QP_TYPE(name, traits) {IBV_QPT_##name, #name, traits},
#include "calls/qp_types.def"
};

enum { ROWS = sizeof rows / sizeof *rows };

static const struct row *find_row(enum ibv_qp_type type)
{
    for (const struct row *row = rows; row < rows + ROWS; row++)
        if (row->type == type)
            return row;
    return NULL;
}

const char *qp_type_name(enum ibv_qp_type type)
{
    const struct row *row = find_row(type);
    return row ? row->name : NULL;
}

bool qp_type_is_of_driver(enum ibv_qp_type type)
{
    return (unsigned)type == QP_KIND_OF_DRIVERS;
}

const char *qp_type_word(enum ibv_qp_type type)
{
    const struct row *row = find_row(type);
    return row ? row->name : qp_type_is_of_driver(type) ? "DRIVER" : "?";
}

uint32_t qp_type_traits(enum ibv_qp_type type)
{
    const struct row *row = find_row(type);
    return row ? row->traits : 0;
}

uint32_t qp_types_with(uint32_t traits)
{
    uint32_t types = 0;
    for (const struct row *row = rows; row < rows + ROWS; row++)
        if ((row->traits & traits) == traits)
            types |= 1u << row->type;
    return types;
}
