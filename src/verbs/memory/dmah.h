/* DMA handles: ibv_alloc_dmah(3). An adapter passes what they say on to the bus; here they are kept, counted and
 * checked. Thread-safe. */
#ifndef VERBS_MEMORY_DMAH_H
#define VERBS_MEMORY_DMAH_H

#include "verbs/object/object.h"

/* NULL and errno: EOPNOTSUPP for bits of comp_mask that don't exist; EINVAL without processing hints (of two bits), for
 * only one of CPU and kind of memory, and for a kind that doesn't exist. */
struct newer_dmah *dmah_allocate(struct ibv_context *, const struct newer_dmah_init_attr *);

/* 0 or an errno: EBUSY while a region was made with it. */
int dmah_deallocate(struct newer_dmah *);

/* The object that a region that is made with it counts as a use of. */
struct object *dmah_object(struct newer_dmah *);

#endif
