/* For each return address it is learned once how its frame leads to the caller's (findings/symbol.h). That is exact, or
 * not known; what is found for the first time must be the unwinder's callers, too. */
#include "check/findings/place_of_post.h"

#include <stdatomic.h>
#include <string.h>

#include "base/likely.h"
#include "check/findings/place.h"
#include "check/findings/symbol.h"

enum { PLACES = 4096, NEAR = 16, FRAME_MOST = 1 << 20 };

enum state { FREE, WRITTEN, READY };

static struct place_of_post places[PLACES];

struct registers {
    const char *stack, *frame;
};

/* Goes to the caller's frame. False: that is not known. */
static bool go_up(struct registers *at, const struct symbol_step *step, const void **address)
{
    uint8_t base = atomic_load_explicit(&step->base, memory_order_relaxed);
    if (base == SYMBOL_NO_BASE)
        return false;
    const char *top = (base == SYMBOL_STACK_POINTER ? at->stack : at->frame) + step->frame;
    bool sound = top > at->stack && top < at->stack + FRAME_MOST && !((uintptr_t)top % sizeof(void *));
    if (unlikely(!sound))
        return false;
    *address = ((const void *const *)top)[-1];
    if (step->saved)
        at->frame = step->loses ? NULL : *(const char *const *)(top + step->saved);
    at->stack = top;
    return *address;
}

/* A function of the data path has its caller's frame pointer, and above it the return address. */
static void walk(const void *address, const void *frame, struct place_of_post *place)
{
    struct registers at = {(const char *)frame + 2 * sizeof(void *), *(const char *const *)frame};
    bool known = true;
    while (known && symbol_is_wrapper(address))
        known = go_up(&at, symbol_step(address), &address);
    while (known) {
        place->frames[place->count++] = address;
        known = place->count < PLACE_OF_POST_FRAMES && go_up(&at, symbol_step(address), &address);
    }
}

static bool is_same(const struct place_of_post *one, const struct place_of_post *other)
{
    return !memcmp(one->frames, other->frames, sizeof one->frames);
}

static size_t place_in_table(const struct place_of_post *place)
{
    uintptr_t mixed = 0;
    for (unsigned at = 0; at < PLACE_OF_POST_FRAMES; at++)
        mixed = (mixed ^ (uintptr_t)place->frames[at]) * 0x9e3779b97f4a7c15ull;
    return mixed >> 32;
}

static const struct place_of_post *find_place(const struct place_of_post *place)
{
    size_t begin = place_in_table(place);
    for (unsigned near = 0; near < NEAR; near++) {
        const struct place_of_post *known = &places[(begin + near) % PLACES];
        unsigned state = atomic_load_explicit(&known->state, memory_order_acquire);
        if (likely(state == READY && is_same(known, place)))
            return known;
        if (state == FREE)
            break;
    }
    return NULL;
}

/* Two threads may enter the same place twice. */
static const struct place_of_post *enter_place(const struct place_of_post *place)
{
    size_t begin = place_in_table(place);
    for (unsigned near = 0; near < NEAR; near++) {
        struct place_of_post *entry = &places[(begin + near) % PLACES];
        unsigned expected = FREE;
        if (!atomic_compare_exchange_strong(&entry->state, &expected, WRITTEN))
            continue;
        memcpy(entry->frames, place->frames, sizeof entry->frames);
        entry->count = place->count;
        atomic_store_explicit(&entry->state, READY, memory_order_release);
        return entry;
    }
    return NULL;
}

static bool agrees(const struct place_of_post *place, const struct place *unwound)
{
    return place->count && unwound->count >= place->count &&
           !memcmp(place->frames, unwound->frames, place->count * sizeof *place->frames);
}

/* Keeps the innermost frame alone, where the unwinder does not agree. */
static const struct place_of_post *judge(struct place_of_post *place, const void *address)
{
    struct place here;
    place_here(&here);
    if (!agrees(place, &here)) {
        symbol_distrust(address);
        *place = (struct place_of_post){.frames = {here.count ? here.frames[0] : address}, .count = 1};
    }
    const struct place_of_post *known = find_place(place);
    return known ? known : enter_place(place);
}

const struct place_of_post *place_of_post(const void *address, const void *frame)
{
    struct place_of_post place = {.count = 0};
    if (place_is_own(address))
        place = (struct place_of_post){.frames = {address}, .count = 1};
    else
        walk(address, frame, &place);
    const struct place_of_post *known = likely(place.count) ? find_place(&place) : NULL;
    if (likely(known != NULL))
        return known;
    return place_is_own(address) ? enter_place(&place) : judge(&place, address);
}
