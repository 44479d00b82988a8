/* Making and destroying device memory: ibv_alloc_dm(3), ibv_free_dm(3). Thread-safe. */
#pragma once

#include "verbs/memory/dm.h"

struct calls;

/* Makes device memory. NULL and errno: EINVAL impossible attributes, ENOMEM when max_dm_size is used up. */
struct ibv_dm *dm_allocate(struct ibv_context *, struct ibv_alloc_dm_attr *);
/* Frees device memory. 0 or an errno: EBUSY while a region is registered on it. */
int dm_free(struct ibv_dm *);

/* Sets ibv_memcpy_to_dm(3) and ibv_memcpy_from_dm(3) as the layers' lowest calls. */
void dm_bottom(struct calls *);
