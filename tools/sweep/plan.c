#include "sweep/plan.h"

#include <stdlib.h>
#include <string.h>

#include "script/answers.h"

/* A call at a place of the program, in all processes together. */
struct spot {
    const struct places_entry *entry;
    unsigned count; /* of the process that makes it most often */
};

static bool is_same(const struct places_entry *one, const struct places_entry *other)
{
    return one->place == other->place && !strncmp(one->call, other->call, sizeof one->call);
}

/* The calls in the process of the entry; threads may have made two entries of a place in one process. */
static unsigned count_in_process(const struct places *table, const struct places_entry *of)
{
    unsigned count = 0;
    for (unsigned i = 0; i < PLACES_MOST; i++)
        if (table->entries[i].process == of->process && is_same(&table->entries[i], of))
            count += (unsigned)table->entries[i].count;
    return count;
}

static void take_entry(const struct places *table, const struct places_entry *entry, struct spot *spots, size_t *many)
{
    unsigned count = count_in_process(table, entry);
    size_t i = 0;
    while (i < *many && !is_same(spots[i].entry, entry))
        i++;
    *many += i == *many;
    if (!spots[i].entry || entry->order < spots[i].entry->order)
        spots[i].entry = entry;
    if (count > spots[i].count)
        spots[i].count = count;
}

static int by_order(const void *one, const void *other)
{
    const struct spot *first = one, *second = other;
    return first->entry->order < second->entry->order ? -1 : 1;
}

static enum sweep_kind kind_of(const char *call)
{
    return !strcmp(call, script_title(SCRIPT_work))    ? SWEEP_COMPLETIONS
           : !strcmp(call, script_title(SCRIPT_event)) ? SWEEP_EVENTS
                                                       : SWEEP_CALLS;
}

static void add(struct plan *plan, const struct spot *spot, unsigned nth)
{
    struct fault *fault = &plan->faults[plan->count++];
    *fault = (struct fault){
        .kind = kind_of(spot->entry->call), .place = spot->entry->place, .nth = nth, .count = spot->count};
    memcpy(fault->call, spot->entry->call, sizeof fault->call - 1);
    memcpy(fault->where, spot->entry->where, sizeof fault->where - 1);
}

static void add_all(struct plan *plan, const struct spot *spots, size_t many)
{
    for (size_t i = 0; i < many; i++)
        add(plan, &spots[i], 1);
    for (size_t i = 0; i < many; i++)
        if (spots[i].count > 1)
            add(plan, &spots[i], spots[i].count);
    for (size_t i = 0; i < many; i++)
        if (spots[i].count > 2)
            add(plan, &spots[i], (spots[i].count + 1) / 2);
}

/* Receives are counted only to compare runs. */
static bool is_wanted(const struct places_entry *entry)
{
    return entry->written && strcmp(entry->call, script_title(SCRIPT_receive)) != 0;
}

bool plan_make(const struct counting *counting, struct plan *plan)
{
    size_t many = 0;
    struct spot *spots = calloc(PLACES_MOST, sizeof *spots);
    for (unsigned i = 0; spots && i < PLACES_MOST; i++)
        if (is_wanted(&counting->table->entries[i]))
            take_entry(counting->table, &counting->table->entries[i], spots, &many);
    if (spots)
        qsort(spots, many, sizeof *spots, by_order);
    *plan = (struct plan){.faults = calloc(3 * many + 1, sizeof *plan->faults)};
    if (spots && plan->faults)
        add_all(plan, spots, many);
    free(spots);
    return spots && plan->faults;
}
