/* Memory regions and their keys: ibv_reg_mr(3) and its kin. Thread-safe; keys are looked up under a qp->lock. */
#ifndef VERBS_MEMORY_MR_H
#define VERBS_MEMORY_MR_H

#include <sys/uio.h>

#include "verbs/memory/rkeys.h"
#include "verbs/qp/qp.h"

struct mr {
    struct ibv_mr ibv;
    struct object object;
    struct object *parent; /* what it counts as a use of: its PD or parent domain */
    struct region region;
    struct dm *dm;       /* of which it is a part; NULL: of none */
    struct object *dmah; /* the DMA handle that it was made with, and is a use of; NULL: none */
    void *mapped;        /* of a file, for this region; NULL: nothing */
    size_t mapped_length;
    _Atomic uint32_t windows; /* bound to it; counted up under a qp->lock under which its key was found */
};

extern const struct object_class mr_class;

static inline struct mr *mr_of(struct ibv_mr *ibv)
{
    return (struct mr *)((char *)object_origin(&((struct mr *)ibv)->object) - offsetof(struct mr, object));
}

static inline bool mr_is_known(const struct ibv_mr *ibv)
{
    return object_is_known(&((const struct mr *)ibv)->object, ibv->handle);
}

/* What a region is made of. */
struct mr_source {
    char *memory;
    void *address; /* as the public region shows it; NULL where there is none */
    uint64_t length, base;
    unsigned access;
    uint8_t kind;        /* enum region_kind */
    struct dm *dm;       /* of which it is a part; NULL: of none */
    struct object *dmah; /* made with this DMA handle; NULL: with none */
    void *mapped;        /* unmapped with the region; NULL: nothing */
    size_t mapped_length;
};

/* Registers what the caller has checked, but for what is true of all regions. NULL and errno. */
struct ibv_mr *mr_register_from(struct ibv_pd *, const struct mr_source *);

/* Registers [address, address + length); peers name it from `base` on. NULL and errno. Nothing is pinned; the range
 * must be mapped, for local write access writable, and such that the kernel can copy from it (EFAULT), unless it pages
 * on demand. access: enum ibv_access_flags; unknown bits outside the optional range are EINVAL. */
struct ibv_mr *mr_register(struct ibv_pd *, void *address, size_t length, uint64_t base, unsigned access);
/* The same for a region that is made with a DMA handle. */
struct ibv_mr *mr_register_hinted(struct ibv_pd *, void *address, size_t length, uint64_t base, unsigned access,
                                  struct object *dmah);
/* EBUSY while a window is bound to it. */
int mr_deregister(struct ibv_mr *);
/* ibv_rereg_mr: 0, or enum ibv_rereg_mr_err_code; after an error the region is as it was. */
int mr_reregister(struct ibv_mr *, int flags, struct ibv_pd *, void *address, size_t length, int access);

/* Do the bytes [address, address + length) lie in the region? */
static inline bool region_covers(const struct region *region, uint64_t address, uint64_t length)
{
    return address >= region->base && length <= region->length && address - region->base <= region->length - length;
}

/* One SGE of this protection domain, or a peer's (rkey, address, length) of the queue pair's, into memory; see struct
 * owner_operations for the reasons. Valid as long as the caller holds the qp->lock under which it asked. */
enum reason mr_local(const struct qp *, const struct pd *, const struct ibv_sge *, unsigned access, struct iovec *);
enum reason mr_remote(const struct qp *, uint32_t rkey, uint64_t address, uint32_t length, unsigned access,
                      struct iovec *);

#endif
