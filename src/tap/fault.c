#include "tap/fault.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BEHIND_MOST = 3 };
static const nanos longest = 10 * NANOS_SECOND;

/* --- the text */

enum key { DROP, DUPLICATE, REORDER, DELAY, CORRUPT, SEED, KEYS };
static const char *const keys[KEYS] = {"drop", "dup", "reorder", "delay", "corrupt", "seed"};

static bool fault_refuse(char *why, size_t why_size, const char *item, const char *reason)
{
    snprintf(why, why_size,
             "The fault \"%s\" %s. A list of faults looks like drop=1%%,dup=0.1%%,reorder=2%%,delay=1ms±0.5ms,"
             "corrupt=0.01%%,seed=7.",
             item, reason);
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

static bool read_delay(const char *value, struct fault_plan *plan)
{
    if (!read_time(&value, &plan->delay))
        return false;
    if (!*value)
        return true;
    const char *sign = !strncmp(value, "±", strlen("±")) ? "±" : "+-";
    if (strncmp(value, sign, strlen(sign)))
        return false;
    value += strlen(sign);
    return read_time(&value, &plan->jitter) && !*value && plan->jitter <= plan->delay;
}

static bool read_seed(const char *value, uint64_t *seed)
{
    char *end;
    *seed = strtoull(value, &end, 10);
    return *value >= '0' && *value <= '9' && !*end;
}

static bool read_value(struct fault_plan *plan, enum key key, const char *value)
{
    switch (key) {
    case DROP:
        return read_share(value, &plan->drop);
    case DUPLICATE:
        return read_share(value, &plan->duplicate);
    case REORDER:
        return read_share(value, &plan->reorder);
    case CORRUPT:
        return read_share(value, &plan->corrupt);
    case DELAY:
        return read_delay(value, plan);
    default:
        return read_seed(value, &plan->seed);
    }
}

static bool read_item(struct fault_plan *plan, char *item, unsigned *seen, char *why, size_t why_size)
{
    char *value = strchr(item, '=');
    size_t length = value ? (size_t)(value - item) : strlen(item);
    int key = 0;
    while (key < KEYS && (strlen(keys[key]) != length || strncmp(item, keys[key], length)))
        key++;
    if (key == KEYS)
        return fault_refuse(why, why_size, item, "is none of drop, dup, reorder, delay, corrupt and seed");
    if (*seen & 1u << key)
        return fault_refuse(why, why_size, item, "stands there twice");
    *seen |= 1u << key;
    if (!value || !read_value(plan, (enum key)key, value + 1))
        return fault_refuse(why, why_size, item,
                            key == SEED    ? "needs a number"
                            : key == DELAY ? "needs a time up to 10s with its unit, and at most as much to and fro"
                                           : "needs a percentage, from 0% to 100%");
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

/* As many draws for every frame, so that one share doesn't change what another does. */
struct fault fault_draw(const struct fault_plan *plan, uint64_t stream, uint64_t number)
{
    uint64_t state = mix(plan->seed + mix(stream + 1)) + mix(number + 0x51ed270bull);
    struct fault fault = {.drop = happens(&state, plan->drop),
                          .duplicate = happens(&state, plan->duplicate),
                          .reorder = happens(&state, plan->reorder)};
    bool corrupt = happens(&state, plan->corrupt);
    uint64_t bit = next(&state), behind = next(&state), jitter = next(&state);
    fault.corrupt = corrupt ? (uint32_t)(bit >> 34) + 1 : 0;
    fault.behind = (uint32_t)(behind % BEHIND_MOST) + 1;
    fault.delay = plan->delay - plan->jitter + (plan->jitter ? jitter % (2 * plan->jitter + 1) : 0);
    return fault;
}

const char *fault_describe(const struct fault *fault, char *to, size_t room)
{
    if (fault->drop || fault->corrupt) {
        snprintf(to, room, "fault: %s", fault->drop ? "dropped" : "corrupted");
        return to;
    }
    if (!fault->duplicate && !fault->reorder && !fault->delay)
        return NULL;
    snprintf(to, room, "fault:%s%s", fault->duplicate ? " repeated" : "", fault->reorder ? " reordered" : "");
    size_t used = strlen(to);
    if (fault->delay)
        snprintf(to + used, room - used, " delayed %.3f ms", (double)fault->delay / NANOS_MILLISECOND);
    return to;
}
