#include "adverse/adverse.h"

#include <stdatomic.h>

#include "base/random.h"
#include "diag/log.h"

enum { WHOLE = 100, SHARE = 3 }; /* one in SHARE + 1 times nothing happens */

static const struct {
    unsigned number;
    const char *word, *meaning;
} behaviours[ADVERSE_BEHAVIOURS] = {
#define ADVERSE(number, name, word, standard, meaning, ...) {number, word, meaning},
#include "adverse/adverse.def"
};

_Atomic uint32_t adverse_on;

static struct {
    bool begun, wanted;
    struct adverse_plan plan;
    _Atomic uint64_t streams, counts[ADVERSE_BEHAVIOURS];
} mode;

bool adverse_begin(const char *list)
{
    char why[768];
    if (mode.begun)
        return mode.wanted;
    mode.begun = true;
    if (!list || !*list)
        return false;
    mode.wanted = adverse_parse(list, &mode.plan, why, sizeof why);
    if (!mode.wanted)
        log_always("SOFTVERBS_ADVERSE ignored: %s", why);
    else
        atomic_store(&adverse_on, mode.plan.on);
    return mode.wanted;
}

void adverse_end(void)
{
    atomic_store(&adverse_on, 0);
}

struct adverse_source adverse_source(void)
{
    return (struct adverse_source){.stream = atomic_fetch_add(&mode.streams, 1)};
}

static uint32_t draw_word(struct adverse_source *source)
{
    const uint64_t words[] = {mode.plan.seed, source->stream, source->drawn++};
    return random_fold(random_mix(14695981039346656037ull, words, sizeof words));
}

uint64_t adverse_draw(struct adverse_source *source, uint64_t most)
{
    uint64_t word = (uint64_t)draw_word(source) << 32;
    word |= draw_word(source);
    return most == UINT64_MAX ? word : word % (most + 1);
}

nanos adverse_scaled(nanos time)
{
    return time * mode.plan.scale / WHOLE;
}

/* Draws the kind of a delay. 0: nothing happens; 1: delays up to the longest; from 2 on up to shorter ones. */
static uint64_t draw_kind(struct adverse_source *source, enum adverse behaviour)
{
    bool first = !(source->used >> behaviour & 1);
    uint64_t kind = adverse_draw(source, SHARE);
    source->used |= 1u << behaviour;
    return !kind && first ? adverse_draw(source, SHARE) != 0 : kind;
}

/* Draws a delay, which is likelier short than long. */
nanos adverse_delay(struct adverse_source *source, enum adverse behaviour, nanos most)
{
    if (!adverse_shows(behaviour))
        return 0;
    uint64_t kind = draw_kind(source, behaviour);
    nanos delay = kind ? 1 + adverse_draw(source, adverse_scaled(most) >> 2 * (kind - 1)) : 0;
    if (delay)
        adverse_note(behaviour);
    return delay;
}

void adverse_note(enum adverse behaviour)
{
    if (!atomic_fetch_add_explicit(&mode.counts[behaviour], 1, memory_order_relaxed))
        log_cause(LOG_INFO, REASON_ADVERSE, "adverse behaviour %u, %s (seed %llu): %s", behaviours[behaviour].number,
                  behaviours[behaviour].word, (unsigned long long)mode.plan.seed, behaviours[behaviour].meaning);
}

uint64_t adverse_count(enum adverse behaviour)
{
    return atomic_load_explicit(&mode.counts[behaviour], memory_order_relaxed);
}

const char *adverse_word(enum adverse behaviour)
{
    return behaviours[behaviour].word;
}
