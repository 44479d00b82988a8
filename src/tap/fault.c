#include "tap/fault.h"

#include <stdio.h>

#include "script/faults.h"

enum { BEHIND_MOST = 3 };

/* --- the text */

static const char *const words_done[FAULT_KINDS] = {
#define FAULT(name, word, form, example, done, meaning) done,
#include "events/events.def"
};

const char fault_example[] =
#define FAULT(name, word, form, example, ...) word "=" example ", "
#include "events/events.def"
    "seed=7";

static void fault_refuse(char *why, size_t why_size, const char *text, const struct script_fault *fault)
{
    static const char list[] =
#define FAULT(name, word, form, example, ...) word "=" example ","
#include "events/events.def"
        "seed=7";
    snprintf(why, why_size, "The fault \"%s\", column %u: %s A list of faults looks like %s.", text, fault->column,
             fault->why, list);
}

bool fault_parse(const char *text, struct script *script, char *why, size_t why_size)
{
    struct script_fault fault;
    uint64_t seed;
    bool read = faults_parse(text, script, &seed, &fault);
    if (!read)
        fault_refuse(why, why_size, text, &fault);
    return read;
}

/* --- the dice */

/* Steele, Lea and Flood's SplitMix64: every bit of the result depends on every bit of the state. */
static uint64_t mix(uint64_t value)
{
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9ull;
    value = (value ^ value >> 27) * 0x94d049bb133111ebull;
    return value ^ value >> 31;
}

static uint64_t next(uint64_t *state)
{
    return mix(*state += 0x9e3779b97f4a7c15ull);
}

struct fault fault_draw(uint64_t stream, uint64_t number)
{
    uint64_t state = mix(mix(stream + 1)) + mix(number + 0x51ed270bull);
    uint64_t bit = next(&state), behind = next(&state);
    return (struct fault){.bit = (uint32_t)(bit >> 34) + 1, .behind = (uint32_t)(behind % BEHIND_MOST) + 1};
}

void fault_add(struct fault *fault, unsigned kinds, nanos delay)
{
    fault->delay += delay;
    fault->kinds |= kinds & ~(1u << FAULT_DELAY);
    fault->kinds |= (unsigned)(fault->delay != 0) << FAULT_DELAY;
    if (fault_has(fault, FAULT_DROP))
        fault->kinds = 1u << FAULT_DROP;
    fault->corrupt = fault_has(fault, FAULT_CORRUPT) ? fault->bit : 0;
}

const char *fault_describe(const struct fault *fault, char *to, size_t room)
{
    size_t used = (size_t)snprintf(to, room, "fault:");
    for (unsigned kind = 0; kind < FAULT_KINDS && used < room; kind++)
        if (fault_has(fault, kind))
            used += (size_t)snprintf(to + used, room - used, " %s", words_done[kind]);
    if (fault_has(fault, FAULT_DELAY) && used < room)
        snprintf(to + used, room - used, " (%llu.%03llu ms)", (unsigned long long)(fault->delay / NANOS_MILLISECOND),
                 (unsigned long long)(fault->delay / NANOS_MICROSECOND % 1000));
    return fault->kinds ? to : NULL;
}
