/* Keys of memory regions and windows: an index in the upper bits, and eight low bits that change with each use of the
 * index, so that a stale key misses (IBA 10.6.3.2 leaves these to a key's owner, for a window the program). */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct rkey_table;
struct pd;

/* LOCAL and REMOTE: the two keys of a region whose lkey differs from its rkey (create/mr_register.c). Keys of the kinds
 * after NULL are no lkeys. FOREIGN: memory that the processor can't reach (wire/foreign/foreign.h). INDIRECT: pieces of
 * other regions (memory/indirect.h). */
enum region_kind {
    REGION_MEMORY,
    REGION_LOCAL,
    REGION_FOREIGN,
    REGION_INDIRECT,
    REGION_NULL,
    REGION_WINDOW,
    REGION_REMOTE,
};

/* The memory of a key: a memory region, or the bound range of a memory window. */
struct region {
    struct pd *pd;
    uint64_t base; /* the address that requests name: virtual address, iova, or 0 */
    uint64_t length;
    char *memory;
    unsigned access;
    _Atomic uint32_t key; /* a window's changes when it is bound */
    uint8_t kind;         /* enum region_kind */
};

/* Returns true if the region is memory of the program, found by its lkey. */
static inline bool region_is_memory(const struct region *region)
{
    return region->kind < REGION_INDIRECT;
}

/* Makes a table; NULL: no memory. */
struct rkey_table *rkeys_create(void);
void rkeys_destroy(struct rkey_table *); /* may be NULL */

/* Enters the region and writes its key; ENOMEM: all indices are taken, or no memory. Under process->control. */
int rkeys_enter(struct rkey_table *, struct region *);
/* Removes the region; lookups may still return it until every qp->lock was free once. Under process->control. */
void rkeys_remove(struct rkey_table *, struct region *);
/* rkeys_hide removes the region and keeps its key: no thread finds it until rkeys_show. Under process->control. */
void rkeys_hide(struct rkey_table *, struct region *);
void rkeys_show(struct rkey_table *, struct region *);
/* The region that has this key, or one that differs only in the low eight bits; or NULL. Lock-free. */
struct region *rkeys_at(const struct rkey_table *, uint32_t key);
/* The region that has this key; or NULL. Lock-free. */
struct region *rkeys_find(const struct rkey_table *, uint32_t key);
