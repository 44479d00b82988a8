#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "command.h"
#include "diag/diag.h"
#include "print/emit.h"
#include "print/table.h"

/* What is printed: as a table, or as a list of JSON. */
struct reasons {
    struct table table;
    json_t *list; /* NULL: as a table */
};

static void add_reason(unsigned number, const char *name, const char *sentence, void *context)
{
    struct reasons *reasons = context;
    if (reasons->list) {
        json_array_append_new(reasons->list,
                              json_pack("{s:i, s:s, s:s}", "number", (int)number, "name", name, "sentence", sentence));
        return;
    }
    table_add(&reasons->table, "%5u", number);
    table_add(&reasons->table, "%-24s", name);
    table_add(&reasons->table, "%s", sentence);
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

/* The number that the argument says or names; 0 when there is none such. */
static unsigned find_reason(const char *argument)
{
    char *end;
    unsigned long number = strtoul(argument, &end, 0);
    if (isdigit((unsigned char)*argument) && !*end)
        return number <= 0xffff && reason_name((unsigned)number) ? (unsigned)number : 0;
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
    const char *text, *meaning, *causes, *cure, *page;
} words[] = {
#define WORD(kind, name, number, text, meaning, causes, cure, page)                                                    \
    {kind, name, number, text, meaning, causes, cure, page},
#include "words.def"
};

enum { WORDS = sizeof words / sizeof *words };

static bool is_word(const struct word *word, const char *argument)
{
    return !strcasecmp(argument, word->name) || !strcasecmp(argument, word->text);
}

static void add_part(struct table *table, const char *head, const char *text)
{
    if (!*text)
        return;
    table_add(table, "%s", "");
    table_add(table, "%s", head);
    table_add(table, "%s", text);
}

static void add_word(const struct word *word, struct reasons *reasons)
{
    static const char *const kinds[KINDS] = {"status of a completion", "asynchronous event", "event of librdmacm",
                                             "errno"};
    if (reasons->list) {
        json_array_append_new(reasons->list, json_pack("{s:i, s:s, s:s, s:s, s:s, s:s}", "number", word->number, "name",
                                                       word->name, "text", word->text, "sentence", word->meaning,
                                                       "causes", word->causes, "cure", word->cure));
        return;
    }
    table_add(&reasons->table, "%5d", word->number);
    table_add(&reasons->table, "%-24s", word->name);
    table_add(&reasons->table, "%s (%s, \"%s\")", word->meaning, kinds[word->kind], word->text);
    add_part(&reasons->table, "usual causes", word->causes);
    add_part(&reasons->table, "look at", word->cure);
    add_part(&reasons->table, "page", word->page);
}

/* Programs print the number of a status first, which may be that of a reason, too. */
static void hint_at_words(unsigned number)
{
    for (unsigned i = 0; i < WORDS; i++)
        if ((words[i].kind == STATUS || words[i].kind == ERRNO) && (unsigned)words[i].number == number)
            complain("%u is also the number of %s: \"softverbs explain %s\".", number, words[i].name, words[i].name);
}

/* False: nothing has that number or name. */
static bool explain_one(const char *argument, struct reasons *reasons)
{
    unsigned number = find_reason(argument);
    bool known = number;
    if (number)
        add_reason(number, reason_name(number), reason_sentence(number), reasons);
    if (number && isdigit((unsigned char)*argument) && !reasons->list)
        hint_at_words(number);
    for (unsigned i = 0; i < WORDS; i++)
        if (is_word(&words[i], argument)) {
            add_word(&words[i], reasons);
            known = true;
        }
    return known;
}

static int explain(const struct command *command, int argc, char **argv)
{
    static const struct option options[] = {{"json", no_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'}, {0}};
    struct reasons reasons = {.table = {.columns = 3, .wraps = true}};
    int status = EXIT_OK;
    while (command_option(command, argc, argv, options) != -1)
        if (!reasons.list)
            reasons.list = json_array();
    if (optind == argc)
        reason_each(add_reason, &reasons);
    for (int i = optind; i < argc; i++) {
        if (explain_one(argv[i], &reasons))
            continue;
        complain("No reason is called \"%s\". \"softverbs explain\" lists them all.", argv[i]);
        status = EXIT_NEGATIVE;
    }
    if (reasons.list)
        emit(reasons.list);
    else
        table_print(&reasons.table, stdout);
    return status;
}

const struct command explain_command = {
    .name = "explain",
    .arguments = "[--json] [NUMBER|WORD]...",
    .summary = "Say what a reason, status, event or errno means",
    .help = "  --json            as a list, see docs/user/json.md\n"
            "\n"
            "A word is what a program prints: the name of a reason, IBV_WC_RETRY_EXC_ERR\n"
            "or its text \"transport retry counter exceeded\", IBV_EVENT_QP_FATAL,\n"
            "RDMA_CM_EVENT_UNREACHABLE, EINVAL. Without an argument all reasons are listed.\n"
            "\n"
            "Exit status: 0, or 1 when a number or name does not exist.\n",
    .run = explain,
};
