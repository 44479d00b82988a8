/* The functions of libmlx5 as libibverbs gives them to it: it has only their names (lib/mlx5). Both are of one build.
 */
#pragma once

#include <infiniband/mlx5dv.h>

struct mlx5_table {
#define VENDOR(answer, type, name, parameters, arguments) type(*name) parameters;
#define PART(type, name, parameters, arguments) type(*name) parameters;
#include "calls/mlx5.def"
    int (*refuse)(const char *name); /* logs that the function is not built; EOPNOTSUPP, which errno has then, too */
};

/* libibverbs exports it. The table is the same at each call. */
const struct mlx5_table *softverbs_mlx5_calls(void);
