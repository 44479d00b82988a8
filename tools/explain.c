#include <ctype.h>
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
        unsigned number = find_reason(argv[i]);
        if (number) {
            add_reason(number, reason_name(number), reason_sentence(number), &reasons);
        } else {
            complain("No reason is called \"%s\". \"softverbs explain\" lists them all.", argv[i]);
            status = EXIT_NEGATIVE;
        }
    }
    if (reasons.list)
        emit(reasons.list);
    else
        table_print(&reasons.table, stdout);
    return status;
}

const struct command explain_command = {
    .name = "explain",
    .arguments = "[--json] [NUMBER|NAME]...",
    .summary = "Say what a reason means: the number in vendor_err or in a log",
    .help = "  --json            as a list, see docs/user/json.md\n"
            "\n"
            "Without an argument it lists all of them.\n"
            "\n"
            "Exit status: 0, or 1 when a number or name does not exist.\n",
    .run = explain,
};
