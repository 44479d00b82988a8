#include "tap/fault.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BEHIND_MOST = 3 };
static const nanos longest = 10 * NANOS_SECOND;

/* --- the text */

enum form { SHARE, TIME };

static const struct {
    const char *word, *done;
    enum form form;
} lines[FAULT_KINDS] = {
#define FAULT(name, word, form, example, done, meaning) {word, done, form},
#include "events/events.def"
};

enum { SEED = FAULT_KINDS, KEYS };

const char fault_example[] =
#define FAULT(name, word, form, example, ...) word "=" example ", "
#include "events/events.def"
    "seed=7";

static bool fault_refuse(char *why, size_t why_size, const char *item, const char *reason)
{
    static const char list[] =
#define FAULT(name, word, form, example, ...) word "=" example ","
#include "events/events.def"
        "seed=7";
    snprintf(why, why_size, "The fault \"%s\" %s. A list of faults looks like %s.", item, reason, list);
    return false;
}

/* A number that begins with a digit or a point: no sign, no "nan", no hexadecimal. */
static bool read_number(const char **at, double *number)
{
    char *end;
    size_t digits = strspn(*at, "0123456789.");
    if (!digits || (*at)[digits] == 'e' || (*at)[digits] == 'E' || (*at)[digits] == 'x')
        return false;
    *number = strtod(*at, &end);
    bool whole = end == *at + digits;
    *at = end;
    return whole;
}

static bool read_share(const char *value, uint64_t *share)
{
    double percent;
    if (!read_number(&value, &percent) || strcmp(value, "%") || percent > 100)
        return false;
    *share = (uint64_t)(percent / 100 * (double)FAULT_ALWAYS);
    return true;
}

static bool read_time(const char **at, nanos *time)
{
    static const struct {
        const char *name;
        double length;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"µs", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    double number;
    if (!read_number(at, &number))
        return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (!strncmp(*at, units[i].name, strlen(units[i].name))) {
            *at += strlen(units[i].name);
            *time = number * units[i].length <= (double)longest ? (nanos)(number * units[i].length) : longest + 1;
            return *time <= longest;
        }
    return false;
}

static bool read_times(const char *value, struct fault_amount *amount)
{
    if (!read_time(&value, &amount->time))
        return false;
    if (!*value)
        return true;
    const char *sign = !strncmp(value, "±", strlen("±")) ? "±" : "+-";
    if (strncmp(value, sign, strlen(sign)))
        return false;
    value += strlen(sign);
    return read_time(&value, &amount->range) && !*value && amount->range <= amount->time;
}

static bool read_seed(const char *value, uint64_t *seed)
{
    char *end;
    *seed = strtoull(value, &end, 10);
    return *value >= '0' && *value <= '9' && !*end;
}

static bool read_value(struct fault_plan *plan, int key, const char *value)
{
    if (key == SEED)
        return read_seed(value, &plan->seed);
    return lines[key].form == TIME ? read_times(value, &plan->of[key]) : read_share(value, &plan->of[key].share);
}

static int find_key(const char *item, size_t length)
{
    int key = 0;
    for (; key < KEYS; key++) {
        const char *word = key == SEED ? "seed" : lines[key].word;
        if (strlen(word) == length && !strncmp(item, word, length))
            break;
    }
    return key;
}

static bool read_item(struct fault_plan *plan, char *item, unsigned *seen, char *why, size_t why_size)
{
    static const char *const needs[] = {[SHARE] = "needs a percentage, from 0% to 100%",
                                        [TIME] =
                                            "needs a time up to 10s with its unit, and at most as much to and fro"};
    static const char unknown[] = "is none of "
#define FAULT(name, word, ...) word ", "
#include "events/events.def"
                                  "and seed";
    char *value = strchr(item, '=');
    int key = find_key(item, value ? (size_t)(value - item) : strlen(item));
    if (key == KEYS)
        return fault_refuse(why, why_size, item, unknown);
    if (*seen & 1u << key)
        return fault_refuse(why, why_size, item, "stands there twice");
    *seen |= 1u << key;
    if (!value || !read_value(plan, key, value + 1))
        return fault_refuse(why, why_size, item, key == SEED ? "needs a number" : needs[lines[key].form]);
    return true;
}

bool fault_parse(const char *text, struct fault_plan *plan, char *why, size_t why_size)
{
    char copy[256], *rest = copy;
    unsigned seen = 0;
    memset(plan, 0, sizeof *plan);
    if (snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy)
        return fault_refuse(why, why_size, "...", "has too long a list");
    for (char *item; (item = strsep(&rest, ","));)
        if (!read_item(plan, item, &seen, why, why_size))
            return false;
    return true;
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
