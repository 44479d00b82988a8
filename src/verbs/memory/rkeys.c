#include "verbs/memory/rkeys.h"

#include <errno.h>
#include <stdlib.h>

#include "base/random.h"

enum { CHUNK = 4096, INDICES = 1 << 24, CHUNKS = INDICES / CHUNK };

struct key_slot {
    _Atomic(struct region *) region;
    uint32_t next_free; /* index, or 0 */
    uint8_t generation;
};

struct rkey_table {
    _Atomic(struct key_slot *) chunks[CHUNKS];
    uint32_t first_free, last_free; /* a queue, so that an index rests as long as possible before its next use */
    uint32_t used;                  /* indices ever used, and index 0, which is never used, because 0 is not a key */
    uint32_t start; /* leads to the first index; random, as first generations are, so that keys can't be guessed */
};

struct rkey_table *rkeys_create(void)
{
    struct rkey_table *table = calloc(1, sizeof *table);
    if (table) {
        table->used = 1;
        table->start = random_draw("key", 0);
    }
    return table;
}

void rkeys_destroy(struct rkey_table *table)
{
    for (unsigned i = 0; table && i < CHUNKS; i++)
        free(atomic_load_explicit(&table->chunks[i], memory_order_relaxed));
    free(table);
}

static inline struct key_slot *slot_at(const struct rkey_table *table, uint32_t index)
{
    struct key_slot *chunk = atomic_load_explicit(&table->chunks[index / CHUNK], memory_order_acquire);
    return chunk ? &chunk[index % CHUNK] : NULL;
}

static uint32_t take_fresh(struct rkey_table *table)
{
    if (table->used == INDICES)
        return 0;
    uint32_t index = 1 + (table->start % INDICES + table->used) % (INDICES - 1);
    if (!slot_at(table, index)) {
        struct key_slot *chunk = calloc(CHUNK, sizeof *chunk);
        if (!chunk)
            return 0;
        atomic_store_explicit(&table->chunks[index / CHUNK], chunk, memory_order_release);
    }
    slot_at(table, index)->generation = (uint8_t)random_draw("generation", table->used++);
    return index;
}

static uint32_t take_index(struct rkey_table *table)
{
    enum { RESTING = 64 }; /* freed indices rest until this many fresh ones were used */
    uint32_t index = table->first_free;
    if (!index || table->used < RESTING)
        return take_fresh(table);
    table->first_free = slot_at(table, index)->next_free;
    return index;
}

int rkeys_enter(struct rkey_table *table, struct region *region)
{
    uint32_t index = take_index(table);
    if (!index)
        return ENOMEM;
    struct key_slot *slot = slot_at(table, index);
    region->key = index << 8 | ++slot->generation;
    atomic_store_explicit(&slot->region, region, memory_order_release);
    return 0;
}

void rkeys_hide(struct rkey_table *table, struct region *region)
{
    atomic_store_explicit(&slot_at(table, region->key >> 8)->region, NULL, memory_order_release);
}

void rkeys_show(struct rkey_table *table, struct region *region)
{
    atomic_store_explicit(&slot_at(table, region->key >> 8)->region, region, memory_order_release);
}

void rkeys_remove(struct rkey_table *table, struct region *region)
{
    uint32_t index = region->key >> 8;
    rkeys_hide(table, region);
    slot_at(table, index)->next_free = 0;
    if (table->first_free)
        slot_at(table, table->last_free)->next_free = index;
    else
        table->first_free = index;
    table->last_free = index;
}

struct region *rkeys_at(const struct rkey_table *table, uint32_t key)
{
    struct key_slot *slot = slot_at(table, key >> 8);
    return slot ? atomic_load_explicit(&slot->region, memory_order_acquire) : NULL;
}

struct region *rkeys_find(const struct rkey_table *table, uint32_t key)
{
    struct region *region = rkeys_at(table, key);
    return region && atomic_load_explicit(&region->key, memory_order_relaxed) == key ? region : NULL;
}
