/* Buffers that the library allocates, and regions of memory, files and buffers in one call. Thread-safe. */
#pragma once

#include "verbs/object/object.h"

/* ibv_alloc_buf(3): at least `size` bytes that begin on a page; *buffer names them until buffer_free. NULL and errno.
 * The protection domain must outlive the buffer, which does not count as a use of it. */
void *buffer_allocate(struct ibv_pd *, size_t size, struct newer_buf **buffer);
void buffer_free(struct newer_buf *);
const void *buffer_memory(const struct newer_buf *); /* returns the beginning of the buffer */

/* ibv_reg_mr_ex (ibv_reg_mr(3)): NULL and errno; EOPNOTSUPP for bits of comp_mask that don't exist, EINVAL when they
 * don't fit together. Reads only the attributes that comp_mask names, as programs of releases 59 to 63 do not have
 * all. */
struct ibv_mr *buffer_register(struct ibv_pd *, const struct newer_mr_init_attr *);
