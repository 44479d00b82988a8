#include "transport/srd/tables.h"

enum { TABLES_LEAST = 16 };

/* splitmix64 */
uint64_t tables_mix(uint64_t mixed)
{
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
    return mixed ^ mixed >> 31;
}

uint64_t srd_tables_random(struct srd *srd)
{
    if (!srd->random)
        srd->random = srd->common.settings.seed;
    return tables_mix(srd->random += 0x9e3779b97f4a7c15);
}

static void move_entries(struct hash *from, struct hash *to)
{
    for (uint32_t bucket = 0; from->buckets && bucket <= from->mask; bucket++)
        for (struct hash_entry *entry; (entry = from->buckets[bucket]);)
            hash_add(to, entry, entry->key);
}

static bool enlarge(struct srd *srd, struct hash *hash)
{
    struct engine_owner *owner = srd->common.owner;
    uint32_t buckets = hash->buckets ? 2 * (hash->mask + 1) : TABLES_LEAST;
    struct hash larger = {owner->operations->room(owner, buckets * sizeof *hash->buckets), buckets - 1};
    if (!larger.buckets)
        return false;
    move_entries(hash, &larger);
    *hash = larger;
    return true;
}

/* A table that can't grow only has longer lists. */
bool tables_make_room(struct srd *srd, struct hash *hash, uint32_t count)
{
    bool full = !hash->buckets || count > hash->mask;
    return !full || enlarge(srd, hash) || hash->buckets;
}
