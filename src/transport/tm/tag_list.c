#include "transport/tm/tag_list.h"

#include <string.h>

static size_t lines(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

static size_t entries_size(uint32_t capacity)
{
    return lines(((size_t)capacity + 1) * sizeof(struct tag_entry));
}

static size_t masks_size(uint32_t capacity)
{
    return lines(((size_t)capacity + 1) * sizeof(struct tag_mask));
}

size_t tag_list_size(uint32_t capacity)
{
    return entries_size(capacity) + masks_size(capacity) + tag_table_size(capacity);
}

void tag_list_initialize(struct tag_list *list, void *memory, uint32_t capacity)
{
    char *masks = (char *)memory + entries_size(capacity);
    memset(list, 0, sizeof(*list));
    list->capacity = capacity;
    list->entries = memory;
    list->masks = (void *)masks;
    tag_table_initialize(&list->table, masks + masks_size(capacity), capacity);
    for (list->index_bits = 1; capacity >> list->index_bits; list->index_bits++)
        ;
}

/* While fresh entries are left, a freed one is used again only when this many rest, since a handle has only some bits
 * to distinguish the lives of its entry. More of them would not stay in the processor's nearest cache. */
enum { RESTING = 64 };

uint32_t tag_list_allocate(struct tag_list *list)
{
    uint32_t entry = 0;
    if (list->resting >= RESTING || (list->resting && list->fresh == list->capacity)) {
        entry = list->free;
        list->free = list->entries[entry].next;
        list->resting--;
    } else if (list->fresh < list->capacity)
        entry = ++list->fresh;
    else
        return 0;
    list->entries[entry].allocated = true;
    list->allocated++;
    return entry;
}

void tag_list_free(struct tag_list *list, uint32_t entry)
{
    struct tag_entry *of = &list->entries[entry];
    of->allocated = false;
    of->generation++; /* so that its handle misses from now on */
    of->next = 0;
    if (list->resting++)
        list->entries[list->last_free].next = entry;
    else
        list->free = entry;
    list->last_free = entry;
    list->allocated--;
}

uint32_t tag_list_handle(const struct tag_list *list, uint32_t entry)
{
    return entry | (uint32_t)list->entries[entry].generation << list->index_bits; /* a bit-field would be an int */
}

uint32_t tag_list_by_handle(const struct tag_list *list, uint32_t handle)
{
    uint32_t entry = handle & ((1u << list->index_bits) - 1);
    if (!entry || entry > list->fresh || !list->entries[entry].allocated)
        return 0;
    return tag_list_handle(list, entry) == handle ? entry : 0;
}

/* The finaliser of a well mixing hash: every bit of the input reaches every bit of the result. */
static uint32_t mix(uint64_t value)
{
    value ^= value >> 32;
    value *= 0xd6e8feb86659fd93u;
    value ^= value >> 32;
    value *= 0xd6e8feb86659fd93u;
    return (uint32_t)(value ^ value >> 32);
}

static uint32_t hash_of(uint64_t tag, uint32_t mask)
{
    return mix(tag + mask * 0x9e3779b97f4a7c15u);
}

static uint32_t *mask_bucket(struct tag_list *list, uint64_t mask)
{
    return &list->mask_buckets[mix(mask) % TAG_LIST_MASK_BUCKETS];
}

static uint32_t make_mask(struct tag_list *list, uint64_t mask, uint32_t *bucket)
{
    uint32_t index = list->free_mask;
    if (index)
        list->free_mask = list->masks[index].next;
    else
        index = ++list->fresh_mask; /* there are as many as entries */
    list->masks[index] = (struct tag_mask){.mask = mask, .next = list->first_mask, .chain = *bucket};
    if (list->first_mask)
        list->masks[list->first_mask].previous = index;
    list->first_mask = index;
    *bucket = index;
    return index;
}

static uint32_t find_mask(struct tag_list *list, uint64_t mask)
{
    uint32_t *bucket = mask_bucket(list, mask);
    for (uint32_t index = *bucket; index; index = list->masks[index].chain)
        if (list->masks[index].mask == mask)
            return index;
    return make_mask(list, mask, bucket);
}

static void drop_mask(struct tag_list *list, uint32_t index)
{
    struct tag_mask *mask = &list->masks[index];
    uint32_t *link = mask_bucket(list, mask->mask);
    while (*link != index)
        link = &list->masks[*link].chain;
    *link = mask->chain;
    if (mask->next)
        list->masks[mask->next].previous = mask->previous;
    if (mask->previous)
        list->masks[mask->previous].next = mask->next;
    else
        list->first_mask = mask->next;
    mask->next = list->free_mask;
    list->free_mask = index;
}

/* The oldest entry of this mask and tag. */
static uint32_t find_ring(const struct tag_list *list, uint64_t tag, uint32_t mask, uint32_t hash)
{
    struct tag_walk walk = tag_table_walk(&list->table, hash);
    uint32_t entry;
    do
        entry = tag_walk_next(&walk);
    while (entry && (list->entries[entry].tag != tag || list->entries[entry].mask != mask));
    return entry;
}

static void join_ring(struct tag_list *list, uint32_t entry, uint32_t oldest)
{
    struct tag_entry *entries = list->entries;
    uint32_t last = entries[oldest].previous;
    entries[entry].oldest = false;
    entries[entry].previous = last;
    entries[entry].next = oldest;
    entries[last].next = entries[oldest].previous = entry;
}

void tag_list_insert(struct tag_list *list, uint32_t entry, uint64_t tag, uint64_t mask)
{
    struct tag_entry *of = &list->entries[entry];
    of->tag = tag;
    of->mask = find_mask(list, mask);
    of->sequence = list->next_sequence++;
    list->masks[of->mask].entries++;
    list->count++;
    uint32_t hash = hash_of(tag, of->mask), oldest = find_ring(list, tag, of->mask, hash);
    if (oldest) {
        join_ring(list, entry, oldest);
        return;
    }
    of->next = of->previous = entry;
    of->oldest = true;
    of->place = tag_table_insert(&list->table, hash, entry);
}

/* Takes the oldest entry of a ring out of the table; the next of the ring, if there is one, takes its place. */
static void leave_table(struct tag_list *list, uint32_t entry)
{
    struct tag_entry *of = &list->entries[entry], *next = &list->entries[of->next];
    of->oldest = false;
    if (next == of) {
        tag_table_remove(&list->table, hash_of(of->tag, of->mask), of->place);
        return;
    }
    next->oldest = true;
    next->place = of->place;
    tag_table_replace(&list->table, of->place, of->next);
}

void tag_list_remove(struct tag_list *list, uint32_t entry)
{
    struct tag_entry *entries = list->entries, *of = &entries[entry];
    if (of->oldest)
        leave_table(list, entry);
    entries[of->previous].next = of->next;
    entries[of->next].previous = of->previous;
    if (!--list->masks[of->mask].entries)
        drop_mask(list, of->mask);
    of->mask = 0;
    list->count--;
}

uint32_t tag_list_find(const struct tag_list *list, uint64_t tag, uint64_t before)
{
    uint32_t found = 0;
    for (uint32_t mask = list->first_mask; mask; mask = list->masks[mask].next) {
        uint64_t part = tag & list->masks[mask].mask;
        uint32_t entry = find_ring(list, part, mask, hash_of(part, mask));
        if (!entry || list->entries[entry].sequence >= before)
            continue;
        found = entry;
        before = list->entries[entry].sequence;
    }
    return found;
}
