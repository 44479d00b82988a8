#include "draw/lookup.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "command.h"

static void *require_memory(void *memory)
{
    if (memory)
        return memory;
    complain("There is not enough memory to draw so many packets; see --limit.");
    exit(EXIT_NEGATIVE);
}

void *list_grow(void *list, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return list;
    *room = *room ? 2 * *room : 64;
    return require_memory(reallocarray(list, *room, size));
}

void *list_make(size_t count, size_t size)
{
    return require_memory(calloc(count ? count : 1, size));
}

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t mixed = (a ^ (b << 31 | b >> 33)) * 0x9e3779b97f4a7c15u;
    return (mixed ^ mixed >> 29) * 0xbf58476d1ce4e5b9u >> 20;
}

static struct lookup_slot *find_slot(const struct lookup *lookup, uint64_t a, uint64_t b)
{
    size_t at = mix(a, b) & (lookup->room - 1);
    while (lookup->slots[at].used && (lookup->slots[at].a != a || lookup->slots[at].b != b))
        at = (at + 1) & (lookup->room - 1);
    return &lookup->slots[at];
}

static void make_room(struct lookup *lookup)
{
    struct lookup larger = {.room = lookup->room ? 2 * lookup->room : 64, .count = lookup->count};
    larger.slots = list_make(larger.room, sizeof *larger.slots);
    for (size_t i = 0; i < lookup->room; i++)
        if (lookup->slots[i].used)
            *find_slot(&larger, lookup->slots[i].a, lookup->slots[i].b) = lookup->slots[i];
    free(lookup->slots);
    *lookup = larger;
}

uint32_t *lookup_find(struct lookup *lookup, uint64_t a, uint64_t b)
{
    if (2 * (lookup->count + 1) > lookup->room)
        make_room(lookup);
    struct lookup_slot *slot = find_slot(lookup, a, b);
    if (!slot->used) {
        *slot = (struct lookup_slot){a, b, LOOKUP_NONE, 1};
        lookup->count++;
    }
    return &slot->value;
}

void lookup_free(struct lookup *lookup)
{
    free(lookup->slots);
}

static uint32_t append(struct strings *strings, const char *text, size_t length)
{
    *LIST_ADD(strings->list, strings->count, strings->room) = require_memory(strndup(text, length));
    return (uint32_t)strings->count - 1;
}

uint32_t strings_add(struct strings *strings, const char *text, size_t length)
{
    if (!strings->count)
        append(strings, "", 0);
    length = strnlen(text, length);
    if (!length)
        return 0;
    for (uint64_t hash = random_mix(0xcbf29ce484222325u, text, length);; hash++) {
        uint32_t *index = lookup_find(&strings->lookup, hash, length);
        if (*index == LOOKUP_NONE)
            return *index = append(strings, text, length);
        if (!strncmp(strings->list[*index], text, length))
            return *index;
    }
}

void strings_free(struct strings *strings)
{
    for (size_t i = 0; i < strings->count; i++)
        free(strings->list[i]);
    free(strings->list);
    lookup_free(&strings->lookup);
}
