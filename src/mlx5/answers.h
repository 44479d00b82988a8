/* The common checks of the calls of libmlx5. Thread-safe. */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "verbs/context/device.h"

enum {
    MLX5_MEMCPY_MOST = 16 << 20, /* bytes of one wr_memcpy: the copy is one step, during which other work waits */
    MLX5_UMR_INLINE = 512,       /* bytes of a work request for the layout of an indirect key */
};

/* The context of the library, whose device and process it has. */
static inline struct context *mlx5_context(struct ibv_context *context)
{
    return context_of(context);
}

/* 0, or the errno of a call for a device that has not the calls of mlx5. */
int mlx5_check(void);

/* Refuses a part of a call that softverbs does not have: EOPNOTSUPP, with one line. */
int mlx5_lacks(const char *part);

/* Refuses bits that are not known: EINVAL. */
int mlx5_refuse_bits(const char *name, uint64_t bits);

/* Refuses attributes that don't go together: EINVAL. */
int mlx5_refuse_together(const char *what);

/* The most receives of a queue pair that takes them out of order; 0: the device has no such queue pairs. */
uint32_t mlx5_ooo_most(void);
