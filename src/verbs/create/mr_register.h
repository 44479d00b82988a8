/* Making, changing and destroying memory regions: ibv_reg_mr(3) and its kin. Thread-safe. */
#pragma once

#include "verbs/memory/mr.h"

/* The parts of a region. */
struct mr_source {
    char *memory;
    void *address; /* as the public region shows it; or NULL */
    uint64_t length, base;
    unsigned access;
    uint8_t kind;                  /* enum region_kind */
    struct dm *dm;                 /* the device memory that it is a part of; or NULL */
    const struct foreign *foreign; /* copies the memory, if the processor can't reach it; otherwise NULL */
    struct object *dmah;           /* the DMA handle that the program names; or NULL */
    void *mapped;                  /* a file's memory, unmapped with the region; or NULL */
    size_t mapped_length;
};

/* Registers a source that the caller has checked, except for the checks of all regions. NULL and errno. */
struct ibv_mr *mr_register_from(struct ibv_pd *, const struct mr_source *);

/* Registers [address, address + length); peers name it from `base` on. NULL and errno. Nothing is pinned; the range
 * must be mapped, writable for local write access, and readable by the kernel (EFAULT), unless it pages on demand, or
 * is memory of a GPU whose driver the program has loaded (memory/cuda.h). access: enum ibv_access_flags; unknown
 * bits outside the optional range are EINVAL. */
struct ibv_mr *mr_register(struct ibv_pd *, void *address, size_t length, uint64_t base, unsigned access);
/* Registers as mr_register does, with a DMA handle. */
struct ibv_mr *mr_register_hinted(struct ibv_pd *, void *address, size_t length, uint64_t base, unsigned access,
                                  struct object *dmah);
/* Deregisters a region. 0 or an errno: EBUSY while a window is bound to it. */
int mr_deregister(struct ibv_mr *);
/* ibv_rereg_mr: 0, or enum ibv_rereg_mr_err_code; after an error the region is unchanged. */
int mr_reregister(struct ibv_mr *, int flags, struct ibv_pd *, void *address, size_t length, int access);
