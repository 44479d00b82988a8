#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "command.h"
#include "diag/diag.h"

static void print_reason(unsigned number, const char *name, const char *sentence, void *context)
{
    printf("%5u  %-24s %s\n", number, name, sentence);
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
    static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {0}};
    int status = EXIT_OK;
    command_option(command, argc, argv, options);
    if (optind == argc)
        reason_each(print_reason, NULL);
    for (int i = optind; i < argc; i++) {
        unsigned number = find_reason(argv[i]);
        if (number) {
            print_reason(number, reason_name(number), reason_sentence(number), NULL);
        } else {
            complain("No reason is called \"%s\". \"softverbs explain\" lists them all.", argv[i]);
            status = EXIT_NEGATIVE;
        }
    }
    return status;
}

const struct command explain_command = {
    .name = "explain",
    .arguments = "[NUMBER|NAME]...",
    .summary = "Say what a reason means (the number in vendor_err or in a log); all of them without an argument",
    .help = "Exit status: 0, or 1 when a number or name does not exist.\n",
    .run = explain,
};
