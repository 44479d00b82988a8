/* The calls of libmlx5 (calls/mlx5.def): the functions below all layers, each with the prefix own_. A device without
 * the key `mlx5` in its profile answers EOPNOTSUPP to each, as rdma-core's library does to a device of another vendor.
 * Thread-safe. */
#pragma once

#include <infiniband/mlx5dv.h>

#define VENDOR(outcome, type, name, parameters, arguments) type own_##name parameters;
#include "calls/mlx5.def"

#define PART(type, name, parameters, arguments) type own_##name parameters;
#include "calls/mlx5.def"

/* The checks of mlx5dv_open_device, whose rest abi/vendors.c does: 0 or an errno. */
int mlx5_check_open(const struct mlx5dv_context_attr *);
