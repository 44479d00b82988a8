/* A hash table whose links are in its entries, and whose owner gives the buckets. Several entries may have one key. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hash_entry {
    struct hash_entry *next;
    struct hash_entry **at; /* the pointer to this entry; NULL: in no table */
    uint64_t key;
};

struct hash {
    struct hash_entry **buckets;
    uint32_t mask; /* the number of buckets, a power of two, minus 1 */
};

static inline struct hash_entry **hash_bucket(const struct hash *hash, uint64_t key)
{
    return &hash->buckets[(key * 0x9e3779b97f4a7c15) >> 32 & hash->mask];
}

/* The first entry of this key, or the next one after `after` where that is not NULL. NULL: no more. */
static inline struct hash_entry *hash_find(const struct hash *hash, uint64_t key, const struct hash_entry *after)
{
    struct hash_entry *entry = after ? after->next : *hash_bucket(hash, key);
    while (entry && entry->key != key)
        entry = entry->next;
    return entry;
}

static inline void hash_remove(struct hash_entry *entry)
{
    if (!entry->at)
        return;
    *entry->at = entry->next;
    if (entry->next)
        entry->next->at = entry->at;
    entry->at = NULL;
}

/* Adds the entry; one that is in the table already changes its key. */
static inline void hash_add(struct hash *hash, struct hash_entry *entry, uint64_t key)
{
    struct hash_entry **bucket = hash_bucket(hash, key);
    hash_remove(entry);
    *entry = (struct hash_entry){.next = *bucket, .at = bucket, .key = key};
    if (entry->next)
        entry->next->at = &entry->next;
    *bucket = entry;
}
