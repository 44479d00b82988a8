/* Device memory: ibv_alloc_dm(3) and its kin. The device's memory is this process's. */
#pragma once

#include "verbs/object/object.h"

struct dm {
    struct ibv_dm ibv;
    struct object object;
    char *memory;
    uint64_t length;
};

extern const struct object_class dm_class;

static inline struct dm *dm_of(struct ibv_dm *ibv)
{
    return (struct dm *)((char *)object_origin(&((struct dm *)ibv)->object) - offsetof(struct dm, object));
}

enum { DM_ALIGNMENT = 4 }; /* offset and length of a copy are multiples of it, as on adapters */
