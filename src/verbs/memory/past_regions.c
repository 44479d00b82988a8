#include "verbs/memory/past_regions.h"

#include <string.h>

#include "base/read_clock.h"
#include "base/static_lock.h"
#include "diagnose/diagnose.h"

LOCK_STATIC(past_lock, LOCK_INNERMOST);
static struct past_region past[PAST_REGIONS];                       /* a ring; key 0: never written; under past_lock */
static unsigned ended;                                              /* keys that ever ended; under past_lock */
static bool (*describe_place)(uint32_t key, char text[PAST_PLACE]); /* NULL: without the checker */

void past_regions_note(const struct region *region)
{
    struct past_region now = {.ended = read_clock(CLOCK_MONOTONIC),
                              .base = region->base,
                              .length = region->length,
                              .key = region->key,
                              .access = region->access,
                              .window = region->kind == REGION_WINDOW};
    lock_take(&past_lock);
    past[ended++ % PAST_REGIONS] = now;
    lock_release(&past_lock);
}

/* The last region that had the key; NULL: no such key. */
static struct past_region *at(uint32_t key)
{
    lock_assert_held(&past_lock);
    for (unsigned back = 1; key && back <= PAST_REGIONS; back++)
        if (past[(ended - back) % PAST_REGIONS].key == key)
            return &past[(ended - back) % PAST_REGIONS];
    return NULL;
}

bool past_regions_find(uint32_t key, struct past_region *region)
{
    lock_take(&past_lock);
    const struct past_region *found = at(key);
    if (found)
        *region = *found;
    lock_release(&past_lock);
    return found;
}

void past_regions_set_places(bool (*describe)(uint32_t key, char text[PAST_PLACE]))
{
    describe_place = describe;
}

const char *past_regions_place(uint32_t key, char text[PAST_PLACE])
{
    return describe_place && describe_place(key, text) ? text : NULL;
}

char *past_regions_words(uint32_t key, char text[PAST_WORDS])
{
    struct past_region region;
    char place[PAST_PLACE];
    *text = 0;
    if (!past_regions_find(key, &region))
        return text;
    const struct facts_refused memory = {.key = {key, true},
                                         .base = {region.base, true},
                                         .size = {region.length, true},
                                         .window = {region.window, true},
                                         .place = past_regions_place(key, place)};
    const struct known known = {
        .memory = &memory, .count = {nanos_since(region.ended, read_clock(CLOCK_MONOTONIC)) / NANOS_MILLISECOND, true}};
    memcpy(text, "; ", 2);
    diagnose_words(DIAGNOSIS_KEY_GONE, &known, text + 2, PAST_WORDS - 2);
    return text;
}

void past_regions_forget(void)
{
    lock_take(&past_lock);
    memset(past, 0, sizeof past);
    lock_release(&past_lock);
}
