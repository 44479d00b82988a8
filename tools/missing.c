#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "abi/unsupported.h"
#include "command.h"
#include "table.h"

static void add_row(const char *name, const char *why, void *context)
{
    table_add(context, "%s", name);
    table_add(context, "%s", why);
}

static int missing(const struct command *command, int argc, char **argv)
{
    static const struct option options[] = {
        {"provider", no_argument, NULL, 'p'}, {"help", no_argument, NULL, 'h'}, {0}};
    struct table table = {.columns = 2};
    bool provider = false;
    while (command_option(command, argc, argv, options) != -1)
        provider = true;
    if (optind < argc)
        return command_misused(command, "It takes no argument.");
    unsupported_each(provider, add_row, &table);
    table_print(&table, stdout);
    return EXIT_OK;
}

const struct command missing_command = {
    .name = "missing",
    .arguments = "[--provider]",
    .summary = "List the functions and operations that answer EOPNOTSUPP, and what they belong to",
    .help =
        "  --provider        also the interface of vendors' plug-ins, which stays empty for good: it is there so that\n"
        "                    programs linked against such plug-ins load\n",
    .run = missing,
};
