#include "script/faults.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum form { SHARE, TIME };

/* The words of SOFTVERBS_FAULT. */
static const struct {
    const char *word;
    enum form form;
} kinds[FAULT_KINDS] = {
#define FAULT(name, word, form, example, done, meaning) [FAULT_##name] = {word, form},
#include "events/events.def"
};

const unsigned fault_fates[FAULT_KINDS] = {[FAULT_DROP] = SCRIPT_DROP,
                                           [FAULT_DUPLICATE] = SCRIPT_DUPLICATE,
                                           [FAULT_REORDER] = SCRIPT_REORDER,
                                           [FAULT_CORRUPT] = SCRIPT_CORRUPT};

/* The kinds that messages of the connection manager meet, too. */
enum { OF_MESSAGES = 1 << FAULT_DROP | 1 << FAULT_DUPLICATE | 1 << FAULT_CORRUPT };

static const char stops[] = ",;#";
static const nanos longest = 10 * NANOS_SECOND;

/* A list that is being read. */
struct list {
    struct script *script;
    unsigned first; /* index of the list's first rule in the script */
    unsigned seen;  /* bits of enum fault_kind, then one for the seed */
    bool begun;     /* the rule of the next item was begun already */
    bool alone;     /* the list is not in a script, where each line must have a rule */
    uint64_t seed;
};

/* Finds the sign in "1ms+-0.5ms", or the end of "1ms". The sign has two forms, of two bytes each. */
static const char *find_sign(const char *word)
{
    const char *plain = strstr(word, "+-"), *sign = plain ? plain : strstr(word, "±");
    return sign ? sign : word + strlen(word);
}

static bool read_length(struct reader *reader, const char *at, const char *word, nanos *time)
{
    return (reader_duration(word, 0, time) && *time <= longest) ||
           reader_refuse(reader, at, "\"%s\" is not a time up to 10s with its unit (ns, us, ms or s).", word);
}

static bool read_times(struct reader *reader)
{
    struct script_rule *rule = reader->rule;
    char word[SCRIPT_WORD];
    const char *begin = reader->at;
    if (!reader_word(reader, stops, word))
        return false;
    const char *sign = find_sign(word), *spread = *sign ? sign + 2 : NULL;
    word[sign - word] = 0;
    if (!read_length(reader, begin, word, &rule->delay))
        return false;
    if (!spread)
        return true;
    if (!read_length(reader, begin + (spread - word), spread, &rule->draw.spread))
        return false;
    return rule->draw.spread <= rule->delay ||
           reader_refuse(reader, begin, "A delay that varies by more than it lasts would be below 0.");
}

static bool read_kind(struct reader *reader, enum fault_kind kind)
{
    struct script_rule *rule = reader->rule;
    rule->calls[SCRIPT_packet] = true;
    rule->calls[SCRIPT_message] = OF_MESSAGES >> kind & 1;
    rule->fates = fault_fates[kind];
    rule->draw.fault = (uint8_t)(kind + 1);
    return kinds[kind].form == TIME ? read_times(reader) : reader_share(reader, stops, &rule->draw.share);
}

/* Reads the word before the sign of equality. Returns its kind, FAULT_KINDS for the seed, or -1 for a wrong word. */
static int read_name(struct reader *reader)
{
    static const char all[] =
#define FAULT(name, word, ...) word ", "
#include "events/events.def"
        "and seed";
    char name[SCRIPT_WORD];
    const char *begin = reader->at;
    int kind = 0;
    if (!reader_word(reader, "=,;#", name))
        return -1;
    while (kind < FAULT_KINDS && strcmp(kinds[kind].word, name) != 0)
        kind++;
    if (kind == FAULT_KINDS && strcmp(name, "seed") != 0)
        return reader_refuse(reader, begin, "\"%s\" is not one of %s.", name, all) - 1;
    if (!reader_take(reader, '='))
        return reader_refuse(reader, begin, "\"%s\" needs a value: %s=...", name, name) - 1;
    return kind;
}

static bool read_item(struct reader *reader, struct list *list)
{
    reader_skip(reader);
    const char *begin = reader->at;
    int kind = read_name(reader);
    if (kind < 0)
        return false;
    if (list->seen >> kind & 1)
        return reader_refuse(reader, begin, "\"%.*s\" is there twice.", (int)strcspn(begin, "="), begin);
    list->seen |= 1u << kind;
    if (kind == FAULT_KINDS)
        return reader_number(reader, stops, UINT64_MAX, &list->seed);
    if (!list->begun && !reader_begin_rule(reader, list->script))
        return false;
    list->begun = false;
    if (!read_kind(reader, (enum fault_kind)kind))
        return false;
    if (!list->alone && kinds[kind].form == TIME && !reader->rule->delay)
        return reader_refuse(reader, begin, "A delay of 0 does nothing.");
    snprintf(reader->rule->text, sizeof reader->rule->text, "fault %.*s", (int)(reader->at - begin), begin);
    return true;
}

static bool read_list(struct reader *reader, struct list *list)
{
    do
        if (!read_item(reader, list))
            return false;
    while (reader_take(reader, ','));
    for (unsigned i = list->first; i < list->script->count; i++) {
        struct script_rule *rule = &list->script->rules[i];
        rule->draw.seeded = list->alone || list->seen >> FAULT_KINDS & 1;
        rule->draw.seed = list->seed;
        rule->line = list->alone ? 0 : rule->line;
    }
    return reader_is_at_end(reader) || reader_refuse(reader, reader->at, "The rule has ended here, and more follows.");
}

bool faults_read(struct reader *reader, struct script *script)
{
    struct list list = {.script = script, .first = script->count - 1, .begun = true};
    const char *begin = reader->at;
    return read_list(reader, &list) && (!list.begun || reader_refuse(reader, begin, "A seed alone is not a fault."));
}

bool faults_parse(const char *text, struct script *script, uint64_t *seed, struct script_fault *fault)
{
    struct reader reader = {.at = text, .line_begin = text, .line = 1, .fault = fault};
    struct list list = {.script = script, .first = script->count, .alone = true};
    if (!read_list(&reader, &list))
        return false;
    *seed = list.seed;
    return !*reader.at || reader_refuse(&reader, reader.at, "The list has ended here, and more follows.");
}
