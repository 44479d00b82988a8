/* softverbs adverse: under which seeds of the adverse adapter a program fails, and which behaviour it does not bear. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "adverse/bisect.h"
#include "base/text/text.h"
#include "command.h"
#include "doctor/program.h"

enum { SEEDS = 20 };

/* "1-20", or "7" for one seed. */
static bool read_seeds(const char *text, struct trials *trials)
{
    return text_range(text, &trials->first, &trials->last, &text) && !*text &&
           trials->last - trials->first < SEEDS_MOST;
}

static int take_number(const struct command *command, const char *option, const char *text, unsigned *number)
{
    uint64_t value;
    if (!text_number(text, 1, 1000000, &value))
        return command_misused(command, "%s needs a number from 1 to 1000000.", option);
    *number = (unsigned)value;
    return 0;
}

static int take_list(const struct command *command, const char *text, struct trials *trials)
{
    char why[768];
    return adverse_parse(text, &trials->plan, why, sizeof why) ? 0 : command_misused(command, "%s", why);
}

enum { OPTION_BISECT = 256, OPTION_SEEDS, OPTION_TRIES, OPTION_TIMEOUT, OPTION_LIST, OPTION_JSON };

static const struct option options[] = {OPTION("bisect", OPTION_BISECT),
                                        VALUED("seeds", OPTION_SEEDS),
                                        VALUED("tries", OPTION_TRIES),
                                        VALUED("timeout", OPTION_TIMEOUT),
                                        VALUED("adverse", OPTION_LIST),
                                        OPTION("json", OPTION_JSON),
                                        OPTIONS_END};

static int take_option(const struct command *command, int option, struct bisect *bisect)
{
    struct trials *trials = &bisect->trials;
    if (option == OPTION_SEEDS && !read_seeds(optarg, trials))
        return command_misused(command, "\"%s\" are not seeds: name one, or at most 1000 such as 1-20.", optarg);
    if (option == OPTION_TRIES)
        return take_number(command, "--tries", optarg, &trials->tries);
    if (option == OPTION_TIMEOUT)
        return take_number(command, "--timeout", optarg, &trials->seconds);
    if (option == OPTION_LIST)
        return take_list(command, optarg, trials);
    if (option == OPTION_BISECT)
        bisect->scan_only = false;
    return 0;
}

static int search(struct bisect *bisect, bool as_json)
{
    char path[PATH_MAX];
    if (!program_find(*bisect->trials.program, path))
        return complain_and(EXIT_SELF, "There is no program \"%s\" that can be executed.", *bisect->trials.program);
    bisect->quiet = as_json || bisect->scan_only;
    bisect_run(bisect);
    if (bisect->end == BISECT_BROKEN)
        return complain_and(EXIT_SELF, "The program can't be run: %s.", strerror(errno));
    if (as_json)
        bisect_print_json(bisect);
    else
        bisect_print(bisect);
    return bisect->end == BISECT_NEVER ? EXIT_OK : EXIT_NEGATIVE;
}

static int adverse(const struct command *command, int argc, char **argv)
{
    struct bisect *bisect = calloc(1, sizeof *bisect);
    bool as_json = false;
    if (!bisect)
        return EXIT_SELF;
    bisect->trials.first = 1;
    bisect->trials.last = SEEDS;
    bisect->scan_only = true;
    int status = take_list(command, "", &bisect->trials);
    for (int option; !status && (option = command_option(command, argc, argv, options)) != -1;) {
        as_json |= option == OPTION_JSON;
        status = take_option(command, option, bisect);
    }
    if (!status && optind == argc)
        status = command_misused(command, "It needs a program.");
    if (!status) {
        bisect->trials.program = argv + optind;
        status = search(bisect, as_json);
    }
    free(bisect);
    return status;
}

const struct command adverse_command = {
    .name = "adverse",
    .arguments = "[OPTIONS] [--] PROGRAM [ARGUMENTS]",
    .summary = "Find the behaviour of adapters that a program does not bear",
    .help = "  --bisect          also find the behaviours that make it fail: each that is\n"
            "                    enough by itself, or a list of several that are needed\n"
            "                    together\n"
            "  --seeds A-B       use these seeds, 1-20 by default\n"
            "  --adverse LIST    use this list instead of the default behaviours:\n"
            "                    with=write-order,scale=50% (softverbs help run)\n"
            "  --tries N         take a list for harmless after N good runs, by default 5 to\n"
            "                    100 by the share of failing seeds\n"
            "  --timeout SECONDS take a run for hung after this time, by default 20 times the\n"
            "                    time without the adverse adapter plus ten seconds\n"
            "  --json            print one JSON value\n"
            "\n"
            "It runs the program three times without the adverse adapter, and once under each\n"
            "seed with \"softverbs run --adverse\". A run fails if it ends with another status\n"
            "than 0, crashes or hangs; a sanitizer's finding is shown as such. The program\n"
            "may be a shell script that starts a server and a client, and ends with their\n"
            "status. The output of the program is not shown.\n"
            "\n"
            "Exit status: 0 when it never failed; 1 when it did, under some seed or without\n"
            "the adverse adapter; 2 for a bad option; 125 when it can't be run.\n",
    .runs_rest = true,
    .run = adverse,
};
