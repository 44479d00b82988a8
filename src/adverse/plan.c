#include "adverse/plan.h"

#include <stdio.h>
#include <string.h>

#include "base/text/suggest.h"
#include "base/text/text.h"

enum { SCALE_LEAST = 1, SCALE_MOST = 1000, WHOLE = 100 };

static const struct {
    unsigned number;
    const char *word;
} behaviours[ADVERSE_BEHAVIOURS] = {
#define ADVERSE(number, name, word, ...) {number, word},
#include "adverse/adverse.def"
};

static const uint32_t standard = 0
#define ADVERSE(number, name, word, standard, ...) | (uint32_t)(standard) << ADVERSE_##name
#include "adverse/adverse.def"
    ;

static const char no_behaviour[] = "names no behaviour";

const char adverse_example[] = "seed=7,only=late-write,scale=10%";

struct reading {
    struct adverse_plan *plan;
    bool chosen;    /* there was an only= */
    unsigned given; /* a bit for each key of the list that was read */
};

static enum adverse find_behaviour(const char *text)
{
    uint64_t number;
    bool numbered = text_number(text, 0, UINT64_MAX, &number);
    enum adverse found = 0;
    while (found < ADVERSE_BEHAVIOURS &&
           (numbered ? behaviours[found].number != number : strcmp(behaviours[found].word, text) != 0))
        found++;
    return found;
}

static const char *set_seed(struct reading *reading, const char *value)
{
    return text_number(value, 0, UINT64_MAX, &reading->plan->seed) ? NULL : "needs a number below 2^64";
}

static const char *set_scale(struct reading *reading, const char *value)
{
    const char *end;
    uint64_t scale;
    if (!text_digits(value, &scale, &end) || strcmp(end, "%") || scale < SCALE_LEAST || scale > SCALE_MOST)
        return "needs a percentage from 1% to 1000%";
    reading->plan->scale = (uint32_t)scale;
    return NULL;
}

static const char *choose(struct reading *reading, const char *value, bool on)
{
    enum adverse behaviour = find_behaviour(value);
    if (behaviour == ADVERSE_BEHAVIOURS)
        return no_behaviour;
    reading->plan->on = (reading->plan->on & ~(1u << behaviour)) | (uint32_t)on << behaviour;
    return NULL;
}

static const char *set_only(struct reading *reading, const char *value)
{
    reading->plan->on = reading->chosen ? reading->plan->on : 0;
    reading->chosen = true;
    return choose(reading, value, true);
}

static const char *set_with(struct reading *reading, const char *value)
{
    return choose(reading, value, true);
}

static const char *set_without(struct reading *reading, const char *value)
{
    return choose(reading, value, false);
}

static const struct {
    const char *key;
    const char *(*set)(struct reading *, const char *value); /* NULL, or what is wrong */
    bool once;
} keys[] = {{"seed", set_seed, true},
            {"only", set_only, false},
            {"with", set_with, false},
            {"without", set_without, false},
            {"scale", set_scale, true}};

/* Sets what the key is for. Returns NULL, or what is wrong. */
static const char *set_key(struct reading *reading, size_t key, const char *value)
{
    bool again = keys[key].once && reading->given >> key & 1;
    reading->given |= 1u << key;
    return again ? "is there twice" : keys[key].set(reading, value);
}

/* Reads an item of the list. Returns NULL, or what is wrong with it. */
static const char *adverse_item(struct reading *reading, const char *item)
{
    const char *value = strchr(item, '=');
    size_t length = value ? (size_t)(value - item) : 0;
    for (size_t i = 0; value && i < sizeof keys / sizeof *keys; i++)
        if (strlen(keys[i].key) == length && !strncmp(keys[i].key, item, length))
            return set_key(reading, i, value + 1);
    return "is not one of seed=N, only=BEHAVIOUR, with=BEHAVIOUR, without=BEHAVIOUR and scale=N%";
}

/* The behaviour whose word is most like an item's unknown word; NULL: no word is like it. */
static const char *meant_by(const char *item)
{
    const char *value = strchr(item, '=');
    struct suggestion suggestion = suggest_begin(value ? value + 1 : item);
    for (enum adverse behaviour = 0; behaviour < ADVERSE_BEHAVIOURS; behaviour++)
        suggest_try(&suggestion, behaviours[behaviour].word);
    return suggestion.meant;
}

static bool refuse(char *why, size_t why_size, const char *item, const char *reason)
{
    static const char list[] =
#define ADVERSE(number, name, word, ...) " " #number " " word ","
#include "adverse/adverse.def"
        ;
    const char *meant = reason == no_behaviour ? meant_by(item) : NULL;
    snprintf(why, why_size, "\"%.80s\" of the adverse list %s.%s%s%s A list looks like %s; the behaviours are%.*s.",
             item, reason, meant ? " Did you mean \"" : "", meant ? meant : "", meant ? "\"?" : "", adverse_example,
             (int)sizeof list - 2, list);
    return false;
}

bool adverse_parse(const char *text, struct adverse_plan *plan, char *why, size_t why_size)
{
    char copy[512], *rest = copy;
    struct reading reading = {.plan = plan};
    *plan = (struct adverse_plan){.seed = 1, .on = standard, .scale = WHOLE};
    if (snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy)
        return refuse(why, why_size, "...", "has too long a list");
    for (char *item; *text && (item = strsep(&rest, ","));) {
        const char *wrong = adverse_item(&reading, item);
        if (wrong)
            return refuse(why, why_size, item, wrong);
    }
    return true;
}

bool adverse_list_shows(const char *text, enum adverse behaviour)
{
    char why[1];
    struct adverse_plan plan;
    return text && *text && adverse_parse(text, &plan, why, sizeof why) && plan.on >> behaviour & 1;
}

bool adverse_parse_schedule(const char *text, uint64_t *seed, char *why, size_t why_size)
{
    static const char key[] = "seed=";
    bool read = !strncmp(text, key, sizeof key - 1) && text_number(text + sizeof key - 1, 0, UINT64_MAX, seed);
    if (!read)
        snprintf(why, why_size, "\"%s\" is not a schedule: one looks like seed=7.", text);
    return read;
}
