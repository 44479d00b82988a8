/* Memory regions that are not just a piece of the program's memory, and advice about ordinary ones. Thread-safe.
 * They are deregistered by mr_deregister like all others. */
#pragma once

#include "verbs/object/object.h"

/* ibv_reg_dm_mr, see ibv_alloc_dm(3). */
struct ibv_mr *mr_special_register_dm(struct ibv_pd *, struct ibv_dm *, uint64_t offset, size_t length,
                                      unsigned access);

/* ibv_reg_dmabuf_mr(3): anything that can be mapped will do, a dma-buf or not. */
struct ibv_mr *mr_special_register_fd(struct ibv_pd *, uint64_t offset, size_t length, uint64_t iova, int fd,
                                      unsigned access, struct object *dmah);

/* ibv_alloc_null_mr(3). */
struct ibv_mr *mr_special_allocate_null(struct ibv_pd *);

/* ibv_advise_mr(3): 0 or an errno. */
int mr_special_advise(struct ibv_pd *, enum ibv_advise_mr_advice, uint32_t flags, struct ibv_sge *, uint32_t count);
