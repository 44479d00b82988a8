/* softverbs explain: what a number or a word means. The texts are in the lists that this file includes, and in the
 * lists of events and of the checker's rules. */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text/text.h"
#include "check/rule.h"
#include "command.h"
#include "diag/diag.h"
#include "events/lines.h"
#include "explain/vendors.h"
#include "print/emit.h"
#include "print/table.h"

/* The output: a table, or a list of JSON. */
struct told {
    struct table table;
    json_t *list; /* NULL: as a table */
};

/* The texts of an entry besides its sentence. */
struct parts {
    const char *causes, *example, *cure, *page;
};

/* -- reasons */

static const struct cause {
    enum reason number;
    struct parts parts;
} causes[] = {
#define CAUSE(name, causes, example, cure, page) {REASON_##name, {causes, example, cure, page}},
#include "causes.def"
};

static const struct parts *parts_of(unsigned number)
{
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++)
        if (causes[i].number == number)
            return &causes[i].parts;
    static const struct parts none = {"", "", "", "debugging.md"}; /* the test `reasons` names each such reason */
    return &none;
}

static void add_parts(struct table *table, const struct parts *parts)
{
    table_add_row(table, "", "usual causes", parts->causes);
    table_add_row(table, "", "example", parts->example);
    table_add_row(table, "", "cure", parts->cure);
    table_add_row(table, "", "page");
    table_add(table, "docs/%s", parts->page);
}

static void emit_parts(json_t *object, const struct parts *parts)
{
    json_object_update_new(object, json_pack("{s:s, s:s, s:s, s:s}", "causes", parts->causes, "example", parts->example,
                                             "cure", parts->cure, "page", parts->page));
}

static void add_reason(unsigned number, const char *name, const char *sentence, void *context)
{
    struct told *told = context;
    if (told->list) {
        json_t *object = json_pack("{s:i, s:s, s:s}", "number", (int)number, "name", name, "sentence", sentence);
        emit_parts(object, parts_of(number));
        json_array_append_new(told->list, object);
        return;
    }
    table_add(&told->table, "%5u", number);
    table_add(&told->table, "%-24s", name);
    table_add(&told->table, "%s", sentence);
}

struct search {
    const char *name;
    unsigned number; /* 0: not found */
};

static void compare_name(unsigned number, const char *name, const char *sentence, void *context)
{
    struct search *search = context;
    if (!strcasecmp(name, search->name))
        search->number = number;
}

/* The number that the argument is; 0: not a number. */
static unsigned number_of(const char *argument)
{
    uint64_t number;
    return text_number_or_hex(argument, 0, 0xffff, &number) ? (unsigned)number : 0;
}

/* The number of the reason that the argument names, by number or by name; 0: no such reason. */
static unsigned find_reason(const char *argument)
{
    unsigned number = number_of(argument);
    if (number)
        return reason_name(number) ? number : 0;
    struct search search = {argument, 0};
    reason_each(compare_name, &search);
    return search.number;
}

/* -- words that programs print: a status, an event, an errno */

enum word_kind { STATUS, EVENT, CM, ERRNO, KINDS };

static const struct word {
    enum word_kind kind;
    const char *name;
    int number;
    const char *text, *meaning;
    struct parts parts;
} words[] = {
#define WORD(kind, name, number, text, meaning, causes, example, cure, page)                                           \
    {kind, name, number, text, meaning, {causes, example, cure, page}},
#include "words.def"
};

enum { WORDS = sizeof words / sizeof *words };

static bool is_word(const struct word *word, const char *argument)
{
    return !strcasecmp(argument, word->name) || !strcasecmp(argument, word->text);
}

static void add_word(const struct word *word, struct told *told)
{
    static const char *const kinds[KINDS] = {"status of a completion", "asynchronous event", "event of librdmacm",
                                             "errno"};
    if (told->list) {
        json_t *object = json_pack("{s:i, s:s, s:s, s:s}", "number", word->number, "name", word->name, "text",
                                   word->text, "sentence", word->meaning);
        emit_parts(object, &word->parts);
        json_array_append_new(told->list, object);
        return;
    }
    table_add(&told->table, "%5d", word->number);
    table_add(&told->table, "%-24s", word->name);
    table_add(&told->table, "%s (%s, \"%s\")", word->meaning, kinds[word->kind], word->text);
    add_parts(&told->table, &word->parts);
}

/* Only statuses and errnos are found by number, as programs print it first; a reason may have the same number. */
static bool has_number(const struct word *word, unsigned number)
{
    return number && (word->kind == STATUS || word->kind == ERRNO) && (unsigned)word->number == number;
}

static void hint_at_words(unsigned number)
{
    for (unsigned i = 0; i < WORDS; i++)
        if (has_number(&words[i], number))
            complain("%u is also the number of %s: \"softverbs explain %s\".", number, words[i].name, words[i].name);
}

/* -- what is counted: events/events.def */

static void add_event(const struct event_line *line, struct told *told)
{
    if (told->list) {
        json_t *object = json_pack("{s:i, s:s, s:s}", "number", 0, "name", line->name, "sentence", line->meaning);
        emit_parts(object, &(struct parts){"", "", "", "reference/json.md"});
        json_array_append_new(told->list, object);
        return;
    }
    table_add(&told->table, "%5s", "-");
    table_add(&told->table, "%-24s", line->name);
    if (*line->key)
        table_add(&told->table, "%s (event, counted as \"%s%s%s\")", line->meaning, line->key, *line->part ? " " : "",
                  line->part);
    else
        table_add(&told->table, "%s (event)", line->meaning);
}

/* Explains the events whose name in the log, or key in JSON, is the argument. */
static bool explain_events(const char *argument, struct told *told)
{
    bool known = false;
    for (unsigned i = 0; i < EVENT_KINDS; i++)
        if (!strcasecmp(argument, event_lines[i].name) || (*argument && !strcasecmp(argument, event_lines[i].key))) {
            add_event(&event_lines[i], told);
            known = true;
        }
    return known;
}

/* -- rules of the checker: check/rules.def */

static void add_rule(const struct rule_line *line, struct told *told)
{
    const struct parts parts = {"", "softverbs run --check -- PROGRAM", line->cure, "reference/checker.md"};
    if (told->list) {
        json_t *object =
            json_pack("{s:i, s:s, s:s, s:s, s:s, s:s}", "number", 0, "name", line->id, "sentence", line->what, "level",
                      rule_level_name(line->level), "devices", line->bites, "why", line->why);
        emit_parts(object, &parts);
        json_array_append_new(told->list, object);
        return;
    }
    table_add(&told->table, "%5s", "-");
    table_add(&told->table, "%-24s", line->id);
    table_add(&told->table, "%s (%s)", line->what, rule_level_name(line->level));
    table_add_row(&told->table, "", "why", line->why);
    table_add_row(&told->table, "", "devices", line->bites);
    table_add_row(&told->table, "", "cure", line->cure);
    table_add_row(&told->table, "", "page", "docs/reference/checker.md");
}

static bool explain_rule(const char *argument, struct told *told)
{
    enum rule rule = 0;
    while (rule < RULES && strcasecmp(argument, rule_lines[rule].id))
        rule++;
    if (rule < RULES)
        add_rule(&rule_lines[rule], told);
    return rule < RULES;
}

/* False: nothing has that number or name. */
static bool explain_one(const char *argument, struct told *told)
{
    if (vendors_mean(argument))
        return vendors_explain(argument, &told->table, told->list);
    unsigned number = find_reason(argument), said = number ? 0 : number_of(argument);
    bool known = number;
    if (number)
        add_reason(number, reason_name(number), reason_sentence(number), told);
    if (number && !told->list)
        add_parts(&told->table, parts_of(number));
    if (number && isdigit((unsigned char)*argument) && !told->list)
        hint_at_words(number);
    for (unsigned i = 0; i < WORDS; i++)
        if (is_word(&words[i], argument) || has_number(&words[i], said)) {
            add_word(&words[i], told);
            known = true;
        }
    return explain_rule(argument, told) || explain_events(argument, told) || known;
}

/* -- what is not known */

struct likeness {
    const char *part;
    char names[160];
};

static void collect_like(unsigned number, const char *name, const char *sentence, void *context)
{
    struct likeness *like = context;
    size_t length = strlen(like->names);
    if ((strcasestr(name, like->part) || strcasestr(sentence, like->part)) && length < 100)
        snprintf(like->names + length, sizeof like->names - length, "%s%s (%u)", length ? ", " : "", name, number);
}

static void refuse(const char *argument)
{
    struct likeness like = {.part = argument};
    if (strlen(argument) > 2)
        reason_each(collect_like, &like);
    if (*like.names)
        complain("No reason is called \"%s\"; these contain it: %s.", argument, like.names);
    else
        complain("No reason is called \"%s\". \"softverbs explain\" lists them all.", argument);
}

static int explain(const struct command *command, int argc, char **argv)
{
    static const struct option options[] = {OPTION("json", 'j'), OPTIONS_END};
    struct told told = {.table = {.columns = 3, .wraps = true}};
    int status = EXIT_OK;
    while (command_option(command, argc, argv, options) != -1)
        if (!told.list)
            told.list = json_array();
    if (optind == argc)
        reason_each(add_reason, &told);
    for (int i = optind; i < argc; i++) {
        if (explain_one(argv[i], &told))
            continue;
        if (!vendors_mean(argv[i]))
            refuse(argv[i]);
        status = EXIT_NEGATIVE;
    }
    if (told.list)
        emit(told.list);
    else
        table_print(&told.table, stdout);
    return status;
}

const struct command explain_command = {
    .name = "explain",
    .arguments = "[--json] [NUMBER|WORD]...",
    .summary = "Say what a reason, status, event or errno means",
    .help = "  --json            print a JSON list (docs/reference/json.md)\n"
            "\n"
            "A word is one that programs print: the name of a reason, IBV_WC_RETRY_EXC_ERR\n"
            "or its text \"transport retry counter exceeded\", IBV_EVENT_QP_FATAL,\n"
            "RDMA_CM_EVENT_UNREACHABLE, EINVAL; the name of an event in the log (NAK_SENT)\n"
            "or of a counter (naks_sent); a rule of \"softverbs run --check\"; the vendor_err\n"
            "of another driver (mlx5:129). Without an argument it lists all reasons; with one\n"
            "it adds usual causes, an example, a cure and a page. \"softverbs why\" says what\n"
            "a process waits for right now.\n"
            "\n"
            "Exit status: 0, or 1 when a number or name does not exist.\n",
    .run = explain,
};
