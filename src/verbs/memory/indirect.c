#include "verbs/memory/indirect.h"

#include <sys/mman.h>

#include "base/container.h"
#include "base/mapping.h"
#include "base/static_lock.h"
#include "verbs/memory/mr.h"
#include "wire/guarded.h"

/* --- copies */

/* Finds `least` of the pieces' bytes at most from this offset on: the memory, and their number; 0: there are none, or
 * the region of the piece does not permit the access any more. */
static size_t find_bytes(const struct indirect *indirect, uint64_t offset, unsigned access, char **memory)
{
    uint64_t round = 0, within;
    for (uint32_t i = 0; i < indirect->count; i++)
        round += indirect->pieces[i].bytes;
    if (!round || offset / round >= indirect->rounds)
        return 0;
    const struct indirect_piece *piece = indirect->pieces;
    for (within = offset % round; within >= piece->bytes; piece++)
        within -= piece->bytes;
    uint64_t address = piece->address + offset / round * ((uint64_t)piece->bytes + piece->skip) + within;
    const struct region *region = rkeys_find(indirect->keys, piece->key);
    if (!region || region->kind > REGION_LOCAL || region->pd != indirect->region->pd || access & ~region->access ||
        !region_covers(region, address, piece->bytes - within))
        return 0;
    *memory = region->memory + (address - region->base);
    return piece->bytes - within;
}

/* The place of an address among the bytes of the region. */
static uint64_t offset_of(const struct indirect *indirect, const void *at)
{
    return (uint64_t)((const char *)at - indirect->region->memory);
}

/* Copies between the stage and the pieces; `stage` NULL: only looks whether they are there. */
static bool move(struct indirect *indirect, uint8_t *stage, uint64_t offset, size_t length, unsigned access)
{
    bool moved = true;
    lock_take(&indirect->lock);
    while (moved && length) {
        char *memory;
        size_t there = find_bytes(indirect, offset, access, &memory), part = there < length ? there : length;
        moved = part && (!stage || (access ? guarded_copy(memory, stage, part) : guarded_copy(stage, memory, part)));
        offset += part;
        length -= part;
        stage = stage ? stage + part : NULL;
    }
    lock_release(&indirect->lock);
    return moved;
}

static bool copy_out(void *device, void *stage, const void *from, size_t length)
{
    return move(device, stage, offset_of(device, from), length, 0);
}

static bool copy_in(void *device, void *to, const void *stage, size_t length)
{
    return move(device, (uint8_t *)(uintptr_t)stage, offset_of(device, to), length, IBV_ACCESS_LOCAL_WRITE);
}

/* All copies have ended when they return. */
static bool fence(void *device)
{
    return true;
}

static bool has_pieces(void *device, const void *at, size_t length)
{
    return move(device, NULL, offset_of(device, at), length, 0);
}

static const struct foreign_operations operations = {copy_out, copy_in, fence, has_pieces};

enum { STAGE = FOREIGN_PIECE, STAGES = STAGE + (FOREIGN_LANDINGS + FOREIGN_AHEAD) * FOREIGN_PIECE };

LOCK_STATIC(making, LOCK_INNERMOST);

/* The memory of all copies, as one thread at a time copies; it stays. NULL: there is none. */
static uint8_t *find_stage(void)
{
    static uint8_t *stage;
    lock_take(&making);
    if (!stage) {
        void *made = mapping_make(STAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        stage = made == MAP_FAILED ? NULL : made;
    }
    lock_release(&making);
    return stage;
}

bool indirect_begin(struct indirect *indirect)
{
    uint8_t *stage = find_stage();
    if (!stage)
        return false;
    lock_set_rank(&indirect->lock, LOCK_INNERMOST);
    indirect->foreign = (struct foreign){&operations, indirect,      stage,
                                         STAGE,       stage + STAGE, stage + STAGE + FOREIGN_LANDINGS * FOREIGN_PIECE};
    return true;
}

/* --- pieces */

uint64_t indirect_length(const struct indirect_layout *layout)
{
    uint64_t round = 0;
    for (uint32_t i = 0; i < layout->count; i++)
        round += layout->pieces[i].bytes;
    return round > INDIRECT_BYTES || round * layout->rounds > INDIRECT_BYTES ? UINT64_MAX : round * layout->rounds;
}

struct indirect *indirect_find(const struct rkey_table *keys, uint32_t key)
{
    struct region *region = rkeys_find(keys, key);
    if (!region || region->kind != REGION_INDIRECT)
        return NULL;
    return container_of(region, struct mr, region)->foreign.foreign->device;
}

/* Requests of other queue pairs may run meanwhile: they find no bytes until the length is set, or other bytes than
 * the program meant, as with an adapter. */
void indirect_configure(struct indirect *indirect, const struct indirect_layout *layout, unsigned access)
{
    struct region *region = indirect->region;
    region->length = 0;
    lock_take(&indirect->lock);
    for (uint32_t i = 0; i < layout->count; i++)
        indirect->pieces[i] = layout->pieces[i];
    indirect->count = layout->count;
    indirect->rounds = layout->rounds;
    lock_release(&indirect->lock);
    region->access = access;
    region->length = indirect_length(layout);
}

enum reason indirect_invalidate(struct indirect *indirect, const struct pd *pd, bool by_peer)
{
    if (indirect->region->pd != pd || (by_peer && !indirect->may_be_invalidated_by_peer))
        return REASON_INVALIDATE_KEY;
    indirect_configure(indirect, &(struct indirect_layout){0}, 0);
    return REASON_NONE;
}
