/* Blocks of queue pair numbers and multicast memberships: entries that living processes take and give back without any
 * lock, by exchanging the owner's word. */
#include <errno.h>
#include <string.h>

#include "ipc/table.h"

/* A search in a part of the blocks has a place of its own: from the place of the whole it would begin at the first
 * block nearly always, and give out those again that were used last. */
static bool claim(struct table *table, unsigned blocks, uint32_t *block)
{
    struct table_file *file = table->file;
    atomic_uint *next = blocks < TABLE_BLOCKS ? &file->next_low_block : &file->next_block;
    for (unsigned i = 0; i < blocks; i++) {
        uint32_t at = atomic_fetch_add(next, 1) % blocks, free = 0;
        if (at && at < TABLE_BLOCKS - 1 && !atomic_load(&file->blocks[at]) &&
            atomic_compare_exchange_strong(&file->blocks[at], &free, table_self(table))) {
            *block = at;
            return true;
        }
    }
    return false;
}

int table_claim_block(struct table *table, unsigned blocks, uint32_t *block)
{
    if (!table_self(table))
        return ENODEV;
    if (claim(table, blocks, block))
        return 0;
    return table_sweep_now(table) > 0 && claim(table, blocks, block) ? 0 : ENOSPC;
}

void table_return_block(struct table *table, uint32_t block)
{
    uint32_t owner = table_self(table);
    if (block < TABLE_BLOCKS)
        atomic_compare_exchange_strong(&table->file->blocks[block], &owner, 0);
}

struct group {
    uint64_t half[2];
};

static struct group group_of(const uint8_t bytes[16])
{
    struct group group;
    memcpy(&group, bytes, sizeof group);
    return group;
}

static bool is_group(const struct table_join *join, struct group group)
{
    return atomic_load_explicit(&join->group[0], memory_order_relaxed) == group.half[0] &&
           atomic_load_explicit(&join->group[1], memory_order_relaxed) == group.half[1];
}

static struct table_join *find_own(struct table *table, struct group group)
{
    uint32_t self = table_self(table);
    unsigned used = atomic_load(&table->file->joins_used);
    for (unsigned i = 0; i < used && i < TABLE_JOINS; i++) {
        struct table_join *join = &table->file->joins[i];
        if (atomic_load(&join->owner) == self && atomic_load(&join->count) && is_group(join, group))
            return join;
    }
    return NULL;
}

static void note_used(struct table_file *file, unsigned used)
{
    unsigned before = atomic_load(&file->joins_used);
    while (before < used && !atomic_compare_exchange_weak(&file->joins_used, &before, used))
        ;
}

/* An entry counts as soon as its count is not 0; its group is written before. A reader that looks while an entry passes
 * from one owner to another may take it for a member of the wrong group, which drops the datagram. */
static bool claim_join(struct table *table, struct group group)
{
    for (unsigned i = 0; i < TABLE_JOINS; i++) {
        struct table_join *join = &table->file->joins[i];
        uint32_t free = 0;
        if (atomic_load(&join->owner) || !atomic_compare_exchange_strong(&join->owner, &free, table_self(table)))
            continue;
        atomic_store(&join->group[0], group.half[0]);
        atomic_store(&join->group[1], group.half[1]);
        note_used(table->file, i + 1);
        atomic_store(&join->count, 1);
        return true;
    }
    return false;
}

static bool try_join(struct table *table, struct group group)
{
    lock_take(&table->exclusive);
    struct table_join *join = find_own(table, group);
    if (join)
        atomic_fetch_add(&join->count, 1);
    bool joined = join || claim_join(table, group);
    lock_release(&table->exclusive);
    return joined;
}

int table_join_group(struct table *table, const uint8_t bytes[16])
{
    if (!table_self(table))
        return ENODEV;
    if (try_join(table, group_of(bytes)))
        return 0;
    return table_sweep_now(table) > 0 && try_join(table, group_of(bytes)) ? 0 : ENOSPC;
}

int table_leave_group(struct table *table, const uint8_t bytes[16])
{
    lock_take(&table->exclusive);
    struct table_join *join = find_own(table, group_of(bytes));
    if (join && atomic_fetch_sub(&join->count, 1) == 1)
        atomic_store(&join->owner, 0);
    lock_release(&table->exclusive);
    return join ? 0 : EINVAL;
}

unsigned table_members(const struct table *table, const uint8_t bytes[16], uint32_t *owners)
{
    struct group group = group_of(bytes);
    unsigned used = atomic_load(&table->file->joins_used), count = 0;
    for (unsigned i = 0; i < used && i < TABLE_JOINS && count < TABLE_SLOTS; i++) {
        const struct table_join *join = &table->file->joins[i];
        uint32_t owner = atomic_load(&join->owner);
        if (owner && atomic_load(&join->count) && is_group(join, group))
            owners[count++] = owner;
    }
    return count;
}
