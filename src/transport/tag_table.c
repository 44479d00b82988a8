#include "transport/tag_table.h"

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

void tag_table_insert(struct tag_table *table, uint32_t hash, uint32_t number)
{
    struct tag_group *group;
    uint32_t at = hash & table->group_mask;
    unsigned free;
    while (!(free = tag_group_look(group = &table->groups[at], 0, UINT32_MAX))) {
        group->passed++;
        at = (at + 1) & table->group_mask;
    }
    group->places[__builtin_ctz(free)] = tag_table_bits(table, hash) | number;
}

/* The place that `number` has; `passing` is added to the count of every group that it passed. */
static uint32_t *find_place(struct tag_table *table, uint32_t hash, uint32_t number, uint32_t passing)
{
    struct tag_group *group;
    uint32_t at = hash & table->group_mask, value = tag_table_bits(table, hash) | number;
    unsigned found;
    while (!(found = tag_group_look(group = &table->groups[at], value, UINT32_MAX))) {
        group->passed += passing;
        at = (at + 1) & table->group_mask;
    }
    return &group->places[__builtin_ctz(found)];
}

void tag_table_remove(struct tag_table *table, uint32_t hash, uint32_t number)
{
    *find_place(table, hash, number, UINT32_MAX) = 0;
}

void tag_table_replace(struct tag_table *table, uint32_t hash, uint32_t number, uint32_t by)
{
    *find_place(table, hash, number, 0) = tag_table_bits(table, hash) | by;
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
