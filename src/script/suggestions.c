#include "script/suggestions.h"

#include <stdio.h>
#include <string.h>

#include "script/names.h"
#include "script/raised.h"
#include "script/values.h"

/* --- what the word looks like */

static bool is_name(enum names names, const char *word)
{
    int number;
    return names_number(names, word, &number);
}

/* The text after the digits and points with which the word begins; NULL: it does not begin with a digit. */
static const char *after_number(const char *word)
{
    return *word >= '0' && *word <= '9' ? word + strspn(word, "0123456789.") : NULL;
}

static bool is_number(const char *word)
{
    const char *rest = after_number(word);
    return rest && !*rest;
}

static bool is_share(const char *word)
{
    const char *rest = after_number(word);
    return rest && !strcmp(rest, "%");
}

static bool is_time(const char *word)
{
    nanos time;
    return reader_duration(word, 0, &time);
}

static bool is_raised(const char *word)
{
    const struct script_raised *raised = NULL;
    for (size_t i = 0; (raised = script_raised(i)) && strcmp(raised->name, word) != 0; i++) {
    }
    return raised;
}

/* A value without the word that must be before it. */
struct shape {
    const char *before;
    bool (*fits)(const char *word); /* NULL: it is one of `names` */
    enum names names;
};

static const struct shape conditions[] = {
    {"on ", NULL, NAMES_OBJECTS},     {"nth ", is_number}, {"chance ", is_share}, {"after ", is_time},
    {"opcode ", NULL, NAMES_OPCODES},
};

static const struct shape actions[] = {
    {"error ", NULL, NAMES_ERRORS},
    {"complete ", NULL, NAMES_STATUSES},
    {"signal ", NULL, NAMES_SIGNALS},
    {"raise ", is_raised},
    {"delay ", is_time},
};

static const char *find_before(const char *word, const struct shape *shapes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (shapes[i].fits ? shapes[i].fits(word) : is_name(shapes[i].names, word))
            return shapes[i].before;
    return NULL;
}

/* --- where the word would be right */

/* "nth=3" */
static bool says_sign(const char *word, const struct value_word *(*find)(const char *, bool), char *text)
{
    char name[32];
    size_t length = strcspn(word, "=");
    snprintf(name, sizeof name, "%.*s", (int)length, word);
    if (!word[length] || !find(name, false))
        return false;
    snprintf(text, READER_MEANT, " Write a blank between \"%s\" and its value.", name);
    return true;
}

static const char *suggest_item(const char *word, const struct value_word *(*find)(const char *, bool),
                                const struct shape *shapes, size_t count, char *text)
{
    struct suggestion suggestion = suggest_begin(word);
    const char *before = find_before(word, shapes, count);
    if (says_sign(word, find, text))
        return text;
    value_suggest(&suggestion, find == value_action, false);
    if (before && (!suggestion.meant || suggestion.least > 1))
        snprintf(text, READER_MEANT, " Did you mean \"%s%s\"?", before, word);
    else
        reader_meant(&suggestion, text);
    return text;
}

const char *suggest_condition(const char *word, char text[READER_MEANT])
{
    if (value_action(word, false))
        return strcpy(text, " It is an action: write it after the colon.");
    return suggest_item(word, value_condition, conditions, sizeof conditions / sizeof *conditions, text);
}

const char *suggest_action(const char *word, char text[READER_MEANT])
{
    if (value_condition(word, false))
        return strcpy(text, " It is a condition: write it before the colon.");
    if (!strcmp(word, "when"))
        return strcpy(text, " Write a semicolon or a new line between rules.");
    return suggest_item(word, value_action, actions, sizeof actions / sizeof *actions, text);
}

const char *suggest_short_item(const char *word, char text[READER_MEANT])
{
    struct suggestion suggestion = suggest_begin(word);
    if (value_condition(word, false) || value_action(word, false))
        return strcpy(text, " Only a rule that begins with \"when\" has it.");
    value_suggest(&suggestion, true, true);
    value_suggest(&suggestion, false, true);
    return reader_meant(&suggestion, text);
}

const char *suggest_call(const char *word, char text[READER_MEANT])
{
    struct suggestion suggestion = suggest_begin(word);
    if (value_action(word, false) || value_condition(word, false) || is_name(NAMES_OBJECTS, word))
        return strcpy(text, " A rule is \"when CALL, CONDITIONS: ACTIONS\".");
    for (enum script_call call = 0; call < SCRIPT_EVENTS; call++)
        suggest_try(&suggestion, script_title(call));
    suggest_try(&suggestion, "when");
    suggest_try(&suggestion, "fault");
    return reader_meant(&suggestion, text);
}
