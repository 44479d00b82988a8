/* DMA handles: ibv_alloc_dmah(3). An adapter passes their hints to the bus; here they are kept, counted and checked.
 * Thread-safe. */
#pragma once

#include "verbs/object/object.h"

/* Makes a handle. NULL and errno: EOPNOTSUPP for bits of comp_mask that don't exist; EINVAL without processing hints
 * (of two bits), with only one of CPU and kind of memory, and for an unknown CPU or kind; ENOMEM. */
struct newer_dmah *dmah_allocate(struct ibv_context *, const struct newer_dmah_init_attr *);

/* Ends a handle. 0 or an errno: EBUSY while a region uses it. */
int dmah_deallocate(struct newer_dmah *);

/* The object that a region made with this handle uses. */
struct object *dmah_object(struct newer_dmah *);
