/* The ways to libibverbs for the libraries of vendors, which pass their calls on: exports with softverbs_ and the name
 * of the call for lib/efa, and a table for lib/mlx5. */
#include "abi/around.h"
#include "abi/bottom.h"
#include "abi/export.h"
#include "abi/unsupported.h"
#include "calls/mlx5_table.h"
#include "efa/efa.h"
#include "mlx5/mlx5.h"

struct ibv_context *own_mlx5dv_open_device(struct ibv_device *device, struct mlx5dv_context_attr *attr)
{
    int error = mlx5_check_open(attr);
    return error ? refused_null(error) : export_open_device(device);
}

void bottom_of_vendors(struct calls *calls)
{
#define VENDOR(outcome, type, name, parameters, arguments) calls->name = own_##name;
#include "calls/efa.def"
#define VENDOR(outcome, type, name, parameters, arguments) calls->name = own_##name;
#include "calls/mlx5.def"
}

#define VENDOR(outcome, type, name, parameters, arguments)                                                             \
    type softverbs_##name parameters;                                                                                  \
    EXPORT type softverbs_##name parameters                                                                            \
    {                                                                                                                  \
        const struct calls *around = calls_around();                                                                   \
        return AROUND_##outcome(#name, around ? calls_get(around, name) arguments : own_##name arguments);             \
    }
#include "calls/efa.def"

#define PART(type, name, parameters, arguments)                                                                        \
    type softverbs_##name parameters;                                                                                  \
    EXPORT type softverbs_##name parameters                                                                            \
    {                                                                                                                  \
        return own_##name arguments;                                                                                   \
    }
#include "calls/efa.def"

/* --- mlx5 */

#define PASSED(outcome, type, name, parameters, arguments)                                                             \
    static type mlx5_##name parameters                                                                                 \
    {                                                                                                                  \
        const struct calls *around = calls_around();                                                                   \
        return AROUND_##outcome(#name, around ? calls_get(around, name) arguments : own_##name arguments);             \
    }
#define PASSED_code PASSED
#define PASSED_pointer PASSED
#define PASSED_plain PASSED
#define PASSED_nothing(outcome, type, name, parameters, arguments)                                                     \
    static type mlx5_##name parameters                                                                                 \
    {                                                                                                                  \
        const struct calls *around = calls_around();                                                                   \
        AROUND_nothing(#name, around ? calls_get(around, name) arguments : own_##name arguments);                      \
    }
#define VENDOR(outcome, ...) PASSED_##outcome(outcome, __VA_ARGS__)
#include "calls/mlx5.def"

EXPORT const struct mlx5_table *softverbs_mlx5_calls(void)
{
    static const struct mlx5_table table = {
#define VENDOR(outcome, type, name, parameters, arguments) .name = mlx5_##name,
#define PART(type, name, parameters, arguments) .name = own_##name,
#include "calls/mlx5.def"
        .refuse = unsupported,
    };
    return &table;
}
