#include "script/faults.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "events/events.h"

enum form { SHARE, TIME };

/* The words are those of SOFTVERBS_FAULT. */
static const struct {
    const char *word;
    enum form form;
} kinds[FAULT_KINDS] = {
#define FAULT(name, word, form, example, done, meaning) [FAULT_##name] = {word, form},
#include "events/events.def"
};

static const struct {
    unsigned fate;
    bool messages; /* of the connection manager meet it, too */
} meanings[FAULT_KINDS] = {
    [FAULT_DROP] = {SCRIPT_DROP, true},
    [FAULT_DUPLICATE] = {SCRIPT_DUPLICATE, true},
    [FAULT_REORDER] = {SCRIPT_REORDER, false},
    [FAULT_CORRUPT] = {SCRIPT_CORRUPT, true},
};

static const char stops[] = ",;#";

static bool read_share(struct reader *reader)
{
    char word[SCRIPT_WORD];
    const char *begin = reader->at, *rest;
    double percent;
    if (!reader_word(reader, stops, word))
        return false;
    if (!reader_decimal(word, &percent, &rest) || strcmp(rest, "%") != 0 || percent > 100)
        return reader_refuse(reader, begin, "\"%s\" is no percentage from 0%% to 100%%.", word);
    reader->rule->draw.share = (uint64_t)(percent / 100 * (double)SCRIPT_ALWAYS);
    return true;
}

/* "1ms", "1ms+-0.5ms"; the sign has two forms, of two bytes each. */
static bool read_times(struct reader *reader)
{
    struct script_rule *rule = reader->rule;
    const char *begin = reader->at;
    if (!reader_time(reader, ",;#+\xc2", 0, &rule->delay))
        return false;
    if (!rule->delay)
        return reader_refuse(reader, begin, "A delay of 0 does nothing.");
    if (strncmp(reader->at, "+-", 2) != 0 && strncmp(reader->at, "±", 2) != 0)
        return true;
    reader->at += 2;
    if (!reader_time(reader, stops, 0, &rule->draw.spread))
        return false;
    return rule->draw.spread <= rule->delay ||
           reader_refuse(reader, begin, "A delay that varies by more than it lasts would be below 0.");
}

static bool read_kind(struct reader *reader, enum fault_kind kind)
{
    struct script_rule *rule = reader->rule;
    rule->calls[SCRIPT_packet] = true;
    rule->calls[SCRIPT_message] = meanings[kind].messages;
    rule->fates = meanings[kind].fate;
    return kinds[kind].form == TIME ? read_times(reader) : read_share(reader);
}

/* The word before the sign of equality. */
static bool read_name(struct reader *reader, char name[SCRIPT_WORD])
{
    reader_skip(reader);
    const char *begin = reader->at;
    if (!reader_word(reader, "=,;#", name))
        return false;
    return reader_take(reader, '=') || reader_refuse(reader, begin, "\"%s\" needs a value: %s=...", name, name);
}

static bool read_item(struct reader *reader, struct script *script, uint64_t *seed, bool *seeded, bool *fresh)
{
    char name[SCRIPT_WORD];
    reader_skip(reader);
    const char *begin = reader->at;
    if (!read_name(reader, name))
        return false;
    if (!strcmp(name, "seed")) {
        *seeded = true;
        return reader_number(reader, stops, UINT64_MAX, seed);
    }
    for (enum fault_kind kind = 0; kind < FAULT_KINDS; kind++)
        if (!strcmp(kinds[kind].word, name)) {
            if (!*fresh && !reader_begin_rule(reader, script))
                return false;
            *fresh = false;
            if (!read_kind(reader, kind))
                return false;
            snprintf(reader->rule->text, sizeof reader->rule->text, "fault %.*s", (int)(reader->at - begin), begin);
            return true;
        }
    return reader_refuse(reader, begin, "\"%s\" is no fault, such as drop, and not seed.", name);
}

bool faults_read(struct reader *reader, struct script *script)
{
    unsigned first = script->count - 1;
    const char *begin = reader->at;
    uint64_t seed = 0;
    bool seeded = false, fresh = true;
    do
        if (!read_item(reader, script, &seed, &seeded, &fresh))
            return false;
    while (reader_take(reader, ','));
    if (fresh)
        return reader_refuse(reader, begin, "A seed alone is no fault.");
    for (unsigned i = first; i < script->count; i++) {
        script->rules[i].draw.seeded = seeded;
        script->rules[i].draw.seed = seed;
    }
    return reader_is_at_end(reader) || reader_refuse(reader, reader->at, "The rule has ended here, and more follows.");
}
