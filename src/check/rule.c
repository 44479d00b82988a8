#include "check/rule.h"

#include <stdio.h>

#include "base/text/text.h"

const struct rule_line rule_lines[RULES] = {
#define RULE(NAME, id, level, seen, what, why, bites, cure) {id, RULE_##level, what, why, bites, cure},
#include "check/rules.def"
};

struct rule_choice rule_chosen;

static const char *const level_names[RULE_LEVELS] = {"error", "adapter", "failed", "note"};

const char *rule_level_name(enum rule_level level)
{
    return level_names[level];
}

static enum rule find_rule(struct text_part word)
{
    enum rule rule = 0;
    while (rule < RULES && !text_part_is(word, rule_lines[rule].id))
        rule++;
    return rule;
}

bool rule_counts(enum rule rule)
{
    enum rule_level level = rule_lines[rule].level;
    return level < RULE_FAILED || (level == RULE_FAILED && rule_chosen.failed_counts);
}

/* Returns the last level that the word chooses. `notes` is the word of the list, `note` the level's name in findings.
 */
static enum rule_level find_level(struct text_part word)
{
    static const struct {
        const char *word;
        enum rule_level most;
    } words[] = {{"error", RULE_ERROR}, {"adapter", RULE_FAILED}, {"notes", RULE_NOTE}, {"note", RULE_NOTE}};
    for (size_t at = 0; at < sizeof words / sizeof *words; at++)
        if (text_part_is(word, words[at].word))
            return words[at].most;
    return RULE_LEVELS;
}

static void choose_level(struct rule_choice *choice, enum rule_level most)
{
    for (enum rule rule = 0; rule < RULES; rule++)
        choice->rules[rule] |= rule_lines[rule].level <= most;
}

static bool choose_modifier(struct rule_choice *choice, struct text_part word)
{
    const struct {
        const char *name;
        bool *chosen;
    } modifiers[] = {
        {"fatal", &choice->fatal}, {"fill", &choice->fill}, {"full", &choice->full}, {"pages", &choice->pages}};
    for (size_t at = 0; at < sizeof modifiers / sizeof *modifiers; at++)
        if (text_part_is(word, modifiers[at].name)) {
            *modifiers[at].chosen = true;
            return true;
        }
    return false;
}

/* Adds the rules that the word chooses. False: the word chooses no rules. */
static bool choose_more(struct rule_choice *choice, struct text_part word)
{
    enum rule_level level = find_level(word);
    enum rule rule = find_rule(word);
    if (level < RULE_LEVELS)
        choose_level(choice, level);
    if (rule < RULES) {
        choice->rules[rule] = true;
        choice->failed_counts |= rule_lines[rule].level == RULE_FAILED;
    }
    return level < RULE_LEVELS || rule < RULES;
}

static bool leave_out(struct rule_choice *choice, struct text_part word)
{
    enum rule rule = RULES;
    if (word.length && *word.at == '-')
        rule = find_rule((struct text_part){word.at + 1, word.length - 1});
    if (rule < RULES)
        choice->rules[rule] = false;
    return rule < RULES;
}

/* Calls the function for each word, and counts in `found` the words for which it returns true. Returns the first other
 * word, or an empty one. */
static struct text_part each_word(const char *words, bool (*visit)(struct rule_choice *, struct text_part),
                                  struct rule_choice *choice, unsigned *found)
{
    struct text_part bad = {NULL, 0};
    for (struct text_part word; text_next(&words, ",", &word);) {
        if (!word.length)
            continue;
        if (visit(choice, word))
            ++*found;
        else if (!bad.at)
            bad = word;
    }
    return bad;
}

static bool is_any(struct rule_choice *choice, struct text_part word)
{
    struct rule_choice none = {0};
    return choose_modifier(choice, word) || choose_more(&none, word) || leave_out(&none, word);
}

bool rule_choose(const char *words, struct rule_choice *choice, char *why, size_t size)
{
    unsigned known = 0, added = 0, left_out = 0;
    *choice = (struct rule_choice){0};
    struct text_part bad = each_word(words, is_any, choice, &known);
    if (bad.at)
        return SAY_AND(false, why, size,
                       "\"%.*s\" is neither a rule (\"softverbs checks\" lists them) nor error, adapter, notes, "
                       "fatal, fill, full or pages",
                       (int)bad.length, bad.at);
    each_word(words, choose_more, choice, &added);
    if (!added)
        choose_level(choice, RULE_FAILED);
    each_word(words, leave_out, choice, &left_out);
    return true;
}
