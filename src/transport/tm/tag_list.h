/* The matching list: finds the tagged buffer of a tag. Entries with the same mask and the same tag form a ring, the
 * oldest first; the oldest of each ring is hashed by both (tag_table.h). So a search costs one look per distinct mask,
 * however many entries there are, and the order of posting is kept across masks by a sequence number.
 *
 * Entries are numbers from 1 on. A number is allocated while the entry's buffer is in use, which may be longer than the
 * entry is in the list. All memory is the owner's; it must be zero at the beginning, and only the part for entries that
 * were used is touched. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/tm/tag_table.h"

enum { TAG_LIST_MASK_BUCKETS = 256 };

struct tag_entry {
    uint64_t tag;
    uint64_t sequence;       /* of posting */
    uint32_t mask;           /* index of the mask; 0: the entry is not in the list */
    uint32_t next, previous; /* in the ring; of a free entry: `next` is the next free one */
    uint32_t place;          /* in the table, for the oldest of a ring */
    uint32_t generation : 30;
    uint32_t oldest : 1; /* it is the oldest of its ring, in the table */
    uint32_t allocated : 1;
};

struct tag_mask {
    uint64_t mask;
    uint32_t entries;
    uint32_t next, previous; /* in the list of all masks in use; of a free one: `next` is the next free one */
    uint32_t chain;          /* next mask of the same bucket */
};

struct tag_list {
    uint32_t capacity;
    uint32_t allocated; /* entries in use */
    uint32_t count;     /* entries in the list */
    uint32_t index_bits;
    uint64_t next_sequence;
    struct tag_entry *entries;
    uint32_t free, last_free, resting; /* freed entries, the oldest first; their number */
    uint32_t fresh;                    /* the number of entries that were ever used */
    struct tag_mask *masks;
    uint32_t free_mask, fresh_mask, first_mask;
    uint32_t mask_buckets[TAG_LIST_MASK_BUCKETS];
    struct tag_table table;
};

/* The size of the memory for tag_list_initialize, a multiple of 64; the memory must be 64-aligned and zero. */
size_t tag_list_size(uint32_t capacity);
void tag_list_initialize(struct tag_list *, void *memory, uint32_t capacity);

/* Allocates an entry that is not in the list yet; 0: all entries are in use. */
uint32_t tag_list_allocate(struct tag_list *);
/* Gives back an entry that is not in the list. */
void tag_list_free(struct tag_list *, uint32_t entry);

/* tag_list_insert puts the entry after all others; tag_list_remove takes it out. */
void tag_list_insert(struct tag_list *, uint32_t entry, uint64_t tag, uint64_t mask);
void tag_list_remove(struct tag_list *, uint32_t entry);

/* The oldest entry with (tag & mask) == its tag whose sequence number is below `before`; or 0. */
uint32_t tag_list_find(const struct tag_list *, uint64_t tag, uint64_t before);

/* Convert an entry to the handle by which programs name it, and back: 0 if its entry is gone or never existed. */
uint32_t tag_list_handle(const struct tag_list *, uint32_t entry);
uint32_t tag_list_by_handle(const struct tag_list *, uint32_t handle);

static inline bool tag_list_holds(const struct tag_list *list, uint32_t entry)
{
    return list->entries[entry].mask;
}
