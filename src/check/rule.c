#include "check/rule.h"

#include <stdio.h>
#include <string.h>

const struct rule_line rule_lines[RULES] = {
#define RULE(NAME, id, level, seen, what, why, bites, cure) {id, RULE_##level, RULE_##seen, what, why, bites, cure},
#include "check/rules.def"
};

struct rule_choice rule_chosen;

static const char *const level_names[RULE_LEVELS] = {"error", "adapter", "note"};

const char *rule_level_name(enum rule_level level)
{
    return level_names[level];
}

/* One word in a list, which does not end in a zero. */
struct word {
    const char *text;
    size_t length;
};

static bool is_word(const struct word *word, const char *text)
{
    return word->length == strlen(text) && !strncmp(word->text, text, word->length);
}

static enum rule find_rule(const struct word *word)
{
    enum rule rule = 0;
    while (rule < RULES && !is_word(word, rule_lines[rule].id))
        rule++;
    return rule;
}

/* `notes` is the word for all, `note` the one in a finding. */
static enum rule_level find_level(const struct word *word)
{
    enum rule_level level = is_word(word, "notes") ? RULE_NOTE : 0;
    while (level < RULE_LEVELS && !is_word(word, level_names[level]) && !is_word(word, "notes"))
        level++;
    return level;
}

static void choose_level(struct rule_choice *choice, enum rule_level most)
{
    for (enum rule rule = 0; rule < RULES; rule++)
        choice->rules[rule] |= rule_lines[rule].level <= most;
}

static bool choose_modifier(struct rule_choice *choice, const struct word *word)
{
    const struct {
        const char *name;
        bool *chosen;
    } modifiers[] = {
        {"fatal", &choice->fatal}, {"fill", &choice->fill}, {"full", &choice->full}, {"pages", &choice->pages}};
    for (size_t at = 0; at < sizeof modifiers / sizeof *modifiers; at++)
        if (is_word(word, modifiers[at].name)) {
            *modifiers[at].chosen = true;
            return true;
        }
    return false;
}

/* A word that adds rules: false, it does not. */
static bool choose_more(struct rule_choice *choice, const struct word *word)
{
    enum rule_level level = find_level(word);
    enum rule rule = find_rule(word);
    if (level < RULE_LEVELS)
        choose_level(choice, level);
    if (rule < RULES)
        choice->rules[rule] = true;
    return level < RULE_LEVELS || rule < RULES;
}

static bool leave_out(struct rule_choice *choice, const struct word *word)
{
    enum rule rule = RULES;
    if (word->length && *word->text == '-')
        rule = find_rule(&(struct word){word->text + 1, word->length - 1});
    if (rule < RULES)
        choice->rules[rule] = false;
    return rule < RULES;
}

/* Calls the function for each word until one answers false; that word, or none. */
static struct word each_word(const char *words, bool (*visit)(struct rule_choice *, const struct word *),
                             struct rule_choice *choice, unsigned *found)
{
    struct word bad = {NULL, 0};
    for (struct word word = {words, 0}; *word.text; word.text += word.length + (word.text[word.length] == ',')) {
        word.length = strcspn(word.text, ",");
        if (!word.length)
            continue;
        if (visit(choice, &word))
            ++*found;
        else if (!bad.text)
            bad = word;
    }
    return bad;
}

static bool is_any(struct rule_choice *choice, const struct word *word)
{
    struct rule_choice none = {0};
    return choose_modifier(choice, word) || choose_more(&none, word) || leave_out(&none, word);
}

bool rule_choose(const char *words, struct rule_choice *choice, char *why, size_t size)
{
    unsigned known = 0, added = 0, left_out = 0;
    *choice = (struct rule_choice){0};
    struct word bad = each_word(words, is_any, choice, &known);
    if (bad.text) {
        snprintf(why, size,
                 "\"%.*s\" is neither a rule (\"softverbs checks\" lists them) nor error, adapter, notes, "
                 "fatal, fill, full or pages",
                 (int)bad.length, bad.text);
        return false;
    }
    each_word(words, choose_more, choice, &added);
    if (!added)
        choose_level(choice, RULE_ADAPTER);
    each_word(words, leave_out, choice, &left_out);
    return true;
}
