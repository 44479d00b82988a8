#include "transport/tm/tag_table.h"

enum { STRIDE = TAG_GROUP_PLACES + 1 };
enum { FULL = 13 }; /* entries for each group when all are in use: then one in seven passes its first group */

static uint32_t groups_for(uint32_t capacity)
{
    uint32_t groups = 1;
    while ((uint64_t)groups * FULL < capacity)
        groups *= 2;
    return groups;
}

size_t tag_table_size(uint32_t capacity)
{
    return groups_for(capacity) * sizeof(struct tag_group);
}

void tag_table_initialize(struct tag_table *table, void *memory, uint32_t capacity)
{
    table->groups = memory;
    table->group_mask = groups_for(capacity) - 1;
    for (table->number_mask = 1; table->number_mask < capacity; table->number_mask = table->number_mask * 2 + 1)
        ;
}

uint32_t tag_table_insert(struct tag_table *table, uint32_t hash, uint32_t number)
{
    struct tag_group *group;
    uint32_t at = hash & table->group_mask;
    unsigned free;
    while (!(free = tag_group_look(group = &table->groups[at], 0, UINT32_MAX))) {
        group->passed++;
        at = (at + 1) & table->group_mask;
    }
    unsigned place = (unsigned)__builtin_ctz(free);
    group->places[place] = tag_table_bits(table, hash) | number;
    return at * STRIDE + place;
}

static uint32_t *at_place(struct tag_table *table, uint32_t place)
{
    return &table->groups[place / STRIDE].places[place % STRIDE];
}

void tag_table_remove(struct tag_table *table, uint32_t hash, uint32_t place)
{
    *at_place(table, place) = 0;
    for (uint32_t at = hash & table->group_mask; at != place / STRIDE; at = (at + 1) & table->group_mask)
        table->groups[at].passed--;
}

void tag_table_replace(struct tag_table *table, uint32_t place, uint32_t by)
{
    uint32_t *at = at_place(table, place);
    *at = (*at & ~table->number_mask) | by;
}

struct tag_walk tag_walk_on(struct tag_walk walk)
{
    const struct tag_table *table = walk.table;
    while (!walk.candidates && walk.left-- && table->groups[walk.group].passed) {
        walk.group = (walk.group + 1) & table->group_mask;
        walk.candidates = tag_group_look(&table->groups[walk.group], walk.bits, ~table->number_mask);
    }
    return walk;
}
