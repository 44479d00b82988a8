#include "script/parse.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "script/decide.h"
#include "script/faults.h"
#include "script/field.h"
#include "script/raised.h"
#include "script/suggestions.h"
#include "script/values.h"

/* --- the two forms */

/* The names of kinds, by the bits of enum script_kind. */
static const char *const kind_names[] = {
#define KIND(NAME, name) [SCRIPT_PLACE_OF_##NAME] = name,
#include "script/words.def"
};

static bool can_fail(enum script_call call)
{
    return script_names[call].answer < SCRIPT_ANSWER_nothing;
}

/* Makes the rule be for all calls whose name matches the pattern, or for the happening of this very name. */
static bool read_calls(struct reader *reader, const char *pattern, const char *at)
{
    char meant[READER_MEANT];
    bool any = false;
    for (enum script_call call = 0; call < SCRIPT_EVENTS; call++)
        if (call < SCRIPT_CALLS ? !fnmatch(pattern, script_title(call), 0) : !strcmp(pattern, script_title(call)))
            any = reader->rule->calls[call] = true;
    return any || reader_refuse(reader, at, "No call of libibverbs or librdmacm that softverbs sees is named \"%s\".%s",
                                pattern, suggest_call(pattern, meant));
}

static bool read_call_list(struct reader *reader, const char *stops)
{
    char word[SCRIPT_WORD];
    do {
        reader_skip(reader);
        const char *begin = reader->at;
        if (!reader_word(reader, stops, word))
            return false;
        if (!*word)
            return reader_refuse(reader, begin, "The name of a call is missing.");
        if (!read_calls(reader, word, begin))
            return false;
    } while (stops != reader_long_stops && reader_take(reader, ','));
    return true;
}

static bool check_calls(struct reader *reader, const char *at)
{
    bool any = false;
    for (enum script_call call = 0; call < SCRIPT_EVENTS; call++) {
        bool *has = &reader->rule->calls[call];
        *has = *has && script_names[call].kind & reader->what && (!reader->rule->error || can_fail(call)) &&
               field_fits(reader->rule, call);
        any = any || *has;
    }
    return any || reader_refuse(reader, at, "The call can't fail: it has no way to report an error.");
}

/* "a call, packet or message" */
static void list_kinds(unsigned kinds, char *text, size_t size)
{
    size_t used = 0;
    for (unsigned kind = 0; kinds >> kind; kind++) {
        const char *comma = !used ? "" : kinds >> (kind + 1) ? ", " : " or ";
        if (kinds >> kind & 1 && used < size)
            used += (size_t)snprintf(text + used, size - used, "%s%s", comma, kind_names[kind]);
    }
}

static bool fits_any(const struct reader *reader)
{
    for (enum script_call call = 0; call < SCRIPT_EVENTS; call++)
        if (reader->rule->calls[call] && script_names[call].kind & reader->what)
            return true;
    return false;
}

/* Refuses an action that cannot be done to any subject of the rule. */
static bool take_action(struct reader *reader, const char *begin, const struct value_word *word)
{
    char kinds[128];
    reader->what &= word->what;
    if (fits_any(reader))
        return true;
    list_kinds(word->what, kinds, sizeof kinds);
    return reader_refuse(reader, begin, "The action \"%.*s\" is for %s, not for this.", (int)strcspn(begin, " =:,;#\n"),
                         begin, kinds);
}

/* The items of a rule after its calls: conditions, then actions. */
struct item {
    const struct value_word *(*find)(const char *, bool);
    const char *(*meant)(const char *, char text[READER_MEANT]);
    const char *what;
};
static const struct item a_condition = {value_condition, suggest_condition, "a condition"},
                         an_action = {value_action, suggest_action, "an action"};

static bool read_item(struct reader *reader, const struct item *item)
{
    char name[SCRIPT_WORD], meant[READER_MEANT];
    reader_skip(reader);
    const char *begin = reader->at;
    if (!reader_word(reader, reader_long_stops, name))
        return false;
    const struct value_word *word = item->find(name, false);
    if (!word && !*name)
        return reader_refuse(reader, begin, "The name of %s is missing.", item->what);
    if (!word)
        return reader_refuse(reader, begin, "\"%s\" is not %s.%s", name, item->what, item->meant(name, meant));
    reader_skip(reader);
    return word->read(reader, reader_long_stops) && take_action(reader, begin, word);
}

/* Reads a rule in the long form, after "when". */
static bool read_long(struct reader *reader)
{
    reader_skip(reader);
    const char *begin = reader->at;
    if (!read_call_list(reader, reader_long_stops))
        return false;
    while (reader_take(reader, ','))
        if (!read_item(reader, &a_condition))
            return false;
    if (!reader_take(reader, ':'))
        return reader_refuse(reader, reader->at,
                             "A comma and a condition, or a colon and an action, must follow here.");
    do
        if (!read_item(reader, &an_action))
            return false;
    while (reader_take(reader, ','));
    return check_calls(reader, begin);
}

static bool read_short_item(struct reader *reader)
{
    char name[SCRIPT_WORD], meant[READER_MEANT];
    const char *begin = reader->at;
    if (!reader_word(reader, "=:;#", name))
        return false;
    const struct value_word *word = value_action(name, true);
    if (!word)
        word = value_condition(name, true);
    if (!word)
        return reader_refuse(reader, begin,
                             "\"%s\" is not one of error, delay_enter, signal, when and other actions.%s", name,
                             suggest_short_item(name, meant));
    if (!reader_take(reader, '='))
        return reader_refuse(reader, reader->at, "\"%s\" needs a value: %s=...", name, name);
    return word->read(reader, reader_short_stops) && take_action(reader, begin, word);
}

static bool has_action(const struct script_rule *rule)
{
    return *rule->caller.counts || rule->fates || script_has_value(rule);
}

static bool read_short(struct reader *reader)
{
    const char *begin = reader->at;
    if (!read_call_list(reader, ",:;#"))
        return false;
    while (reader_take(reader, ':'))
        if (!read_short_item(reader))
            return false;
    return check_calls(reader, begin);
}

/* `event port-down soft0` is `when open, device soft0: raise port-down`. */
static bool read_event(struct reader *reader)
{
    struct script_rule *rule = reader->rule;
    reader_skip(reader);
    const char *begin = reader->at;
    if (!value_action("raise", false)->read(reader, reader_long_stops))
        return false;
    if (*rule->raised->of)
        return reader_refuse(reader, begin, "\"%s\" is not an event of a device, such as port-down.",
                             rule->raised->name);
    rule->calls[SCRIPT_open] = true;
    return value_condition("device", false)->read(reader, reader_long_stops);
}

static void keep_text(struct script_rule *rule, const char *begin, const char *end)
{
    size_t length = (size_t)(end - begin), most = sizeof rule->text - 1;
    length = length < most ? length : most;
    memcpy(rule->text, begin, length);
    rule->text[length] = 0;
}

static bool refuse_more(struct reader *reader)
{
    char word[SCRIPT_WORD];
    const char *at = reader->at;
    bool another = reader_word(reader, reader_long_stops, word) && value_action(word, false);
    return reader_refuse(reader, at, "The rule has ended here, and more follows.%s",
                         another ? " Write a comma between actions." : "");
}

static bool read_rule(struct reader *reader, struct script *script)
{
    char word[SCRIPT_WORD];
    const char *begin = reader->at;
    if (!reader_word(reader, reader_long_stops, word))
        return false;
    if (!strcmp(word, "fault"))
        return faults_read(reader, script);
    bool is_long = !strcmp(word, "when"), is_event = !strcmp(word, "event") && !strchr(":,", *reader->at);
    if (!is_long && !is_event)
        reader->at = begin;
    if (!(is_event ? read_event(reader) : is_long ? read_long(reader) : read_short(reader)))
        return false;
    keep_text(reader->rule, begin, reader->at);
    reader_skip(reader);
    if (!reader_is_at_end(reader))
        return refuse_more(reader);
    return has_action(reader->rule) || reader_refuse(reader, begin, "The rule has no action, such as error or delay.");
}

/* --- lines */

static void next_line(struct reader *reader)
{
    if (*reader->at == '#')
        reader->at += strcspn(reader->at, "\n");
    if (*reader->at == ';') {
        reader->at++;
    } else if (*reader->at == '\n') {
        reader->line_begin = ++reader->at;
        reader->line++;
    }
}

bool script_parse(const char *text, struct script *script, struct script_fault *fault)
{
    struct reader reader = {.at = text, .line_begin = text, .line = 1, .fault = fault};
    for (; *reader.at; next_line(&reader)) {
        reader_skip(&reader);
        if (!reader_is_at_end(&reader) && !(reader_begin_rule(&reader, script) && read_rule(&reader, script)))
            return false;
    }
    return true;
}
