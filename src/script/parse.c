#include "script/parse.h"

#include <fnmatch.h>
#include <string.h>

#include "script/faults.h"
#include "script/field.h"
#include "script/values.h"

/* --- the two forms */

static bool can_fail(enum script_call call)
{
    return script_names[call].answer < SCRIPT_ANSWER_nothing;
}

/* A pattern stands for all calls of such a name, and, where the rule refuses, for those of them that can fail. */
static bool read_calls(struct reader *reader, const char *pattern, const char *at)
{
    bool any = false;
    for (enum script_call call = 0; call < SCRIPT_EVENTS; call++)
        if (call < SCRIPT_CALLS ? !fnmatch(pattern, script_title(call), 0) : !strcmp(pattern, script_title(call)))
            any = reader->rule->calls[call] = true;
    return any || reader_refuse(reader, at, "No call of libibverbs or librdmacm that softverbs sees is named \"%s\".",
                                pattern);
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
    bool any = false, fits = false;
    for (enum script_call call = 0; call < SCRIPT_EVENTS; call++) {
        bool *has = &reader->rule->calls[call];
        fits = fits || (*has && script_names[call].kind & reader->what);
        *has = *has && script_names[call].kind & reader->what && (!reader->rule->error || can_fail(call)) &&
               field_fits(reader->rule, call);
        any = any || *has;
    }
    if (!fits)
        return reader_refuse(reader, at, "Not all actions of the rule can be done to that.");
    return any || reader_refuse(reader, at, "The call can't fail: it has no way to report an error.");
}

static bool read_item(struct reader *reader, const struct value_word *(*find)(const char *, bool), const char *what)
{
    char name[SCRIPT_WORD];
    reader_skip(reader);
    const char *begin = reader->at;
    if (!reader_word(reader, reader_long_stops, name))
        return false;
    const struct value_word *word = find(name, false);
    if (!word)
        return reader_refuse(reader, begin, "\"%s\" is no %s.", name, what);
    reader->what &= word->what;
    reader_skip(reader);
    return word->read(reader, reader_long_stops);
}

/* Behind "when". */
static bool read_long(struct reader *reader)
{
    reader_skip(reader);
    const char *begin = reader->at;
    if (!read_call_list(reader, reader_long_stops))
        return false;
    while (reader_take(reader, ','))
        if (!read_item(reader, value_condition, "condition"))
            return false;
    if (!reader_take(reader, ':'))
        return reader_refuse(reader, reader->at, "A comma and a condition, or a colon and an action, must stand here.");
    do
        if (!read_item(reader, value_action, "action"))
            return false;
    while (reader_take(reader, ','));
    return check_calls(reader, begin);
}

static bool read_short_item(struct reader *reader)
{
    char name[SCRIPT_WORD];
    const char *begin = reader->at;
    if (!reader_word(reader, "=:;#", name))
        return false;
    const struct value_word *word = value_action(name, true);
    if (!word)
        word = value_condition(name, true);
    if (!word)
        return reader_refuse(reader, begin, "\"%s\" is none of error, delay_enter, signal, when and other actions.",
                             name);
    reader->what &= word->what;
    if (!reader_take(reader, '='))
        return reader_refuse(reader, reader->at, "\"%s\" needs a value: %s=...", name, name);
    return word->read(reader, reader_short_stops);
}

static bool has_action(const struct script_rule *rule)
{
    return rule->process.stop || rule->process.freeze || *rule->hidden || rule->packet.cut || rule->packet.forged ||
           rule->packet.bandwidth || rule->error || rule->delay || rule->signal || rule->end.wanted || rule->fates ||
           rule->changes.count || rule->rejection.wanted || rule->raised;
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

static void keep_text(struct script_rule *rule, const char *begin, const char *end)
{
    size_t length = (size_t)(end - begin), most = sizeof rule->text - 1;
    length = length < most ? length : most;
    memcpy(rule->text, begin, length);
    rule->text[length] = 0;
}

static bool read_rule(struct reader *reader, struct script *script)
{
    char word[SCRIPT_WORD];
    const char *begin = reader->at;
    if (!reader_word(reader, reader_long_stops, word))
        return false;
    if (!strcmp(word, "fault"))
        return faults_read(reader, script);
    bool is_long = !strcmp(word, "when");
    if (!is_long)
        reader->at = begin;
    if (!(is_long ? read_long(reader) : read_short(reader)))
        return false;
    keep_text(reader->rule, begin, reader->at);
    reader_skip(reader);
    if (!reader_is_at_end(reader))
        return reader_refuse(reader, reader->at, "The rule has ended here, and more follows.");
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
