#include "tap/fault.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "script/faults.h"

enum { BEHIND_MOST = 3 };

/* --- the text */

enum form { SHARE, TIME };

static const struct {
    const char *word, *done;
    enum form form;
} lines[FAULT_KINDS] = {
#define FAULT(name, word, form, example, done, meaning) {word, done, form},
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

static void plan_fault(const struct script_rule *rule, struct fault_plan *plan)
{
    enum fault_kind kind = rule->draw.fault - 1;
    plan->of[kind] = (struct fault_amount){.time = rule->delay, .range = rule->draw.spread};
    if (lines[kind].form == SHARE)
        plan->of[kind].share = rule->draw.share;
}

/* It is read as a line of a script is, whose rules have the amounts. */
bool fault_parse(const char *text, struct fault_plan *plan, char *why, size_t why_size)
{
    struct script_fault fault = {.column = 1, .why = "There is no memory to read it."};
    struct script *script = calloc(1, sizeof *script);
    memset(plan, 0, sizeof *plan);
    bool read = script && faults_parse(text, script, &plan->seed, &fault);
    for (unsigned i = 0; read && i < script->count; i++)
        plan_fault(&script->rules[i], plan);
    free(script);
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

static bool happens(uint64_t *state, uint64_t share)
{
    return (next(state) & (FAULT_ALWAYS - 1)) < share;
}

static void draw_shares(const struct fault_plan *plan, uint64_t *state, struct fault *fault)
{
    for (unsigned kind = 0; kind < FAULT_KINDS; kind++)
        if (lines[kind].form == SHARE)
            fault->kinds |= (unsigned)happens(state, plan->of[kind].share) << kind;
}

/* As many draws for every frame, so that one share doesn't change what another does. */
struct fault fault_draw(const struct fault_plan *plan, uint64_t stream, uint64_t number)
{
    uint64_t state = mix(plan->seed + mix(stream + 1)) + mix(number + 0x51ed270bull);
    const struct fault_amount *delay = &plan->of[FAULT_DELAY];
    struct fault fault = {.kinds = 0};
    draw_shares(plan, &state, &fault);
    uint64_t bit = next(&state), behind = next(&state), jitter = next(&state);
    fault.corrupt = fault_has(&fault, FAULT_CORRUPT) ? (uint32_t)(bit >> 34) + 1 : 0;
    fault.behind = (uint32_t)(behind % BEHIND_MOST) + 1;
    fault.delay = delay->time - delay->range + (delay->range ? jitter % (2 * delay->range + 1) : 0);
    fault.kinds |= (unsigned)(fault.delay != 0) << FAULT_DELAY;
    if (fault_has(&fault, FAULT_DROP)) /* and meets nothing else */
        fault.kinds = 1u << FAULT_DROP;
    return fault;
}

void fault_add(struct fault *fault, const struct fault_wish *wish)
{
    fault->kinds |= (unsigned)wish->duplicate << FAULT_DUPLICATE | (unsigned)wish->reorder << FAULT_REORDER |
                    (unsigned)wish->corrupt << FAULT_CORRUPT | (unsigned)(wish->delay != 0) << FAULT_DELAY;
    fault->delay += wish->delay;
    if (wish->corrupt && !fault->corrupt)
        fault->corrupt = fault->behind * 97; /* some bit, of the headers or behind them */
    if (wish->drop || fault_has(fault, FAULT_DROP)) {
        fault->kinds = 1u << FAULT_DROP;
        fault->corrupt = 0;
    }
}

const char *fault_describe(const struct fault *fault, char *to, size_t room)
{
    size_t used = (size_t)snprintf(to, room, "fault:");
    for (unsigned kind = 0; kind < FAULT_KINDS && used < room; kind++)
        if (fault_has(fault, kind))
            used += (size_t)snprintf(to + used, room - used, " %s", lines[kind].done);
    if (fault_has(fault, FAULT_DELAY) && used < room)
        snprintf(to + used, room - used, " (%.3f ms)", (double)fault->delay / NANOS_MILLISECOND);
    return fault->kinds ? to : NULL;
}
