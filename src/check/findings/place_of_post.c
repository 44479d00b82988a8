/* How the frame at a return address leads to its caller's frame is learned once (findings/symbol.h), and is exact or
 * not known. Callers that are found for the first time are compared with those that the unwinder finds. */
#include "check/findings/place_of_post.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "base/likely.h"
#include "base/mapping.h"
#include "base/own_code.h"
#include "check/findings/place.h"
#include "check/findings/symbol.h"

enum { PLACES = 2048, NEAR = 16, FRAME_MOST = 1 << 20, SITES = 1024, WAYS = 4 };

enum state { FREE, WRITTEN, READY };

/* Made for the first post that is checked: a program that locks its memory, and is not checked, does not have them. */
static struct tables {
    struct place_of_post places[PLACES];
    struct site { /* the last places of posts, by return address; several addresses may share an entry */
        _Atomic(const struct place_of_post *) ways[WAYS];
        _Atomic unsigned turn;
    } sites[SITES];
} * _Atomic tables;

/* Returns NULL where no memory is left. */
static struct tables *make_tables(void)
{
    struct tables *there = NULL;
    void *made = mapping_make(sizeof *there, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED)
        return NULL;
    if (atomic_compare_exchange_strong(&tables, &there, made))
        return made;
    munmap(made, sizeof *there);
    return there;
}

static struct place_of_post *place_at(size_t at)
{
    return &atomic_load_explicit(&tables, memory_order_relaxed)->places[at % PLACES];
}

struct registers {
    const char *stack, *frame;
};

/* Where the caller's frame begins; NULL: it is not known. A frame pointer may be anything where the program has not set
 * it. */
static inline const char *find_top(const struct registers *at, const struct symbol_step *step)
{
    uint8_t base = atomic_load_explicit(&step->base, memory_order_relaxed);
    if (likely(base == SYMBOL_STACK_POINTER))
        return at->stack + step->frame;
    const char *top = at->frame + step->frame;
    bool sound = base == SYMBOL_FRAME_POINTER && top > at->stack && top < at->stack + FRAME_MOST &&
                 !((uintptr_t)top % sizeof(void *));
    return sound ? top : NULL;
}

/* Goes to the caller's frame. False: it is not known where that is. */
static inline bool go_up(struct registers *at, const struct symbol_step *step, const void **address)
{
    const char *top = find_top(at, step);
    if (unlikely(!top))
        return false;
    *address = ((const void *const *)top)[-1];
    if (step->saved)
        at->frame = step->loses ? NULL : *(const char *const *)(top + step->saved);
    at->stack = top;
    return *address;
}

/* A function of the data path keeps its caller's frame pointer, and above it the return address. */
static inline struct registers registers_of(const void *frame)
{
    return (struct registers){(const char *)frame + 2 * sizeof(void *), *(const char *const *)frame};
}

static void walk(const void *address, const void *frame, struct place_of_post *place)
{
    struct registers at = registers_of(frame);
    bool known = true;
    while (known && symbol_is_wrapper(address))
        known = go_up(&at, symbol_step(address), &address);
    while (known) {
        const struct symbol_step *step = symbol_step(address);
        place->frames[place->count++] = address;
        known = place->count < PLACE_OF_POST_FRAMES && go_up(&at, step, &address);
        if (known)
            place->steps[place->count - 1] = step;
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
        const struct place_of_post *known = place_at(begin + near);
        unsigned state = atomic_load_explicit(&known->state, memory_order_acquire);
        if (likely(state == READY && is_same(known, place)))
            return known;
        if (state == FREE)
            break;
    }
    return NULL;
}

/* Two threads that enter the same place at once make two entries of it. */
static const struct place_of_post *enter_place(const struct place_of_post *place)
{
    size_t begin = place_in_table(place);
    for (unsigned near = 0; near < NEAR; near++) {
        struct place_of_post *entry = place_at(begin + near);
        unsigned expected = FREE;
        if (!atomic_compare_exchange_strong(&entry->state, &expected, WRITTEN))
            continue;
        memcpy(entry->frames, place->frames, sizeof entry->frames);
        memcpy(entry->steps, place->steps, sizeof entry->steps);
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

/* Keeps the innermost frame alone if the unwinder does not agree with the walk. */
static const struct place_of_post *judge_place(struct place_of_post *place, const void *address)
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

static const struct place_of_post *find_anew(const void *address, const void *frame)
{
    struct place_of_post place = {.count = 0};
    if (own_code_has(address))
        place = (struct place_of_post){.frames = {address}, .count = 1};
    else
        walk(address, frame, &place);
    const struct place_of_post *known = place.count ? find_place(&place) : NULL;
    if (known)
        return known;
    return own_code_has(address) ? enter_place(&place) : judge_place(&place, address);
}

/* Returns true if a walk from here would find this place: each of its steps leads to its next frame. */
static inline bool is_here(const struct place_of_post *place, const void *address, struct registers at)
{
    bool same = place->frames[0] == address;
    for (unsigned next = 1; same && next < place->count; next++)
        same = go_up(&at, place->steps[next - 1], &address) && place->frames[next] == address;
    return same;
}

const struct place_of_post *place_of_post(const void *address, const void *frame)
{
    const struct registers at = registers_of(frame);
    struct tables *there = atomic_load_explicit(&tables, memory_order_acquire);
    if (unlikely(!there) && !(there = make_tables()))
        return NULL;
    struct site *site = &there->sites[((uintptr_t)address * 0x9e3779b97f4a7c15ull >> 32) % SITES];
    for (unsigned way = 0; way < WAYS; way++) {
        const struct place_of_post *last = atomic_load_explicit(&site->ways[way], memory_order_acquire);
        if (!last)
            break;
        if (likely(is_here(last, address, at)))
            return last;
    }
    const struct place_of_post *found = find_anew(address, frame);
    if (found && found->frames[0] == address)
        atomic_store_explicit(&site->ways[atomic_fetch_add(&site->turn, 1) % WAYS], found, memory_order_release);
    return found;
}
