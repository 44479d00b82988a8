/* softverbs around: becomes a program whose calls pass the checker and the trace in front of the libibverbs that it
 * finds, with whatever devices that has. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/settings.h"
#include "base/text/text.h"
#include "command.h"
#include "diag/last_lines.h"
#include "ipc/node.h"
#include "ipc/place/directory.h"
#include "place.h"
#include "prepare.h"
#include "script/holds.h"
#include "script/script.h"
#include "start/around.h"
#include "start/become.h"
#include "start/selftest.h"
#include "start/told.h"
#include "trace/trace.h"

/* The settings that hold in front of any libibverbs. */
static const enum setting holding[] = {SETTING_CHECK,          SETTING_CHECK_REPORT, SETTING_CHECK_SUPPRESSIONS,
                                       SETTING_ERROR_EXITCODE, SETTING_LOG,          SETTING_LOG_FILE,
                                       SETTING_LOG_FORMAT,     SETTING_STORY,        SETTING_SCRIPT,
                                       SETTING_INJECT,         SETTING_TRACE_RING,   SETTING_TRACE_CALLS};
enum { HOLDING = sizeof holding / sizeof *holding };

enum { OPTION_TRACE = PREPARE_OPTIONS_END, OPTION_TRACE_FILE, OPTION_SELFTEST };

static const struct option own_options[] = {{"trace", optional_argument, NULL, OPTION_TRACE},
                                            VALUED("trace-file", OPTION_TRACE_FILE),
                                            {"selftest", optional_argument, NULL, OPTION_SELFTEST},
                                            {}};

/* The command's own options. */
struct choice {
    bool traced;
    const char *calls, *trace_file; /* NULL: all, to standard error */
    bool told;                      /* the stories are printed after the program */
    bool tests;                     /* the self-test runs, on this device or the first */
    const char *device;
};

static bool holds(int option)
{
    for (unsigned at = 0; at < HOLDING; at++)
        if (option == PREPARE_SETTINGS + (int)holding[at])
            return true;
    return option == 'q';
}

static const char *name_of(const struct option *options, int option)
{
    while (options->val != option)
        options++;
    return options->name;
}

/* A list of the checker that only softverbs' own devices can follow. */
static bool asks_for_pages(int option, const char *list)
{
    bool found = false;
    for (struct text_part part; option == PREPARE_SETTINGS + SETTING_CHECK && list && text_next(&list, ",", &part);)
        found |= text_part_is(part, "pages") || text_part_is(part, "full");
    return found;
}

/* 0, or the exit status after a sentence: the value of --script or --inject has a rule of softverbs' own devices. */
static int check_rules(const struct command *command, int option, const char *value)
{
    char why[512];
    struct script *script = calloc(1, sizeof *script);
    bool named = option == PREPARE_SETTINGS + SETTING_SCRIPT;
    bool read = script && (named ? script_read_file : script_read_text)(value, script, why, sizeof why);
    int status = read && !script_holds_around(script, why, sizeof why) ? command_misused(command, "%s", why) : 0;
    free(script);
    return status;
}

int around_option(const struct command *command, const struct option *options, int option)
{
    if (!holds(option))
        return command_misused(command,
                               "--%s is for the devices of \"softverbs run\". Other devices, and what is on "
                               "their wire, can't be changed from here.",
                               name_of(options, option));
    if (asks_for_pages(option, optarg))
        return command_misused(command,
                               "--check=%s protects pages from the processor, and the device writes to them past "
                               "it. Leave out \"pages\" and \"full\".",
                               optarg);
    int status = prepare_option(command, option, optarg);
    bool rules = option == PREPARE_SETTINGS + SETTING_SCRIPT || option == PREPARE_SETTINGS + SETTING_INJECT;
    return status || !rules ? status : check_rules(command, option, optarg);
}

/* 0, or the exit status after a sentence. */
static int take_option(const struct command *command, const struct option *options, int option, struct choice *choice)
{
    choice->tests |= option == OPTION_SELFTEST;
    choice->traced |= option == OPTION_TRACE || option == OPTION_TRACE_FILE;
    if (option == OPTION_TRACE)
        choice->calls = optarg;
    else if (option == OPTION_SELFTEST)
        choice->device = optarg;
    else if (option == OPTION_TRACE_FILE && !*optarg)
        return command_misused(command, "The value of --trace-file is empty. Leave the option out for stderr.");
    else if (option == OPTION_TRACE_FILE)
        choice->trace_file = optarg;
    else if (option == PREPARE_SETTINGS + SETTING_STORY && !strcmp(optarg, "-"))
        choice->told = true;
    else
        return around_option(command, options, option);
    return 0;
}

/* The last lines of the processes' logs are kept where those of softverbs' own are; nowhere, if that can't be. */
static void keep_lines(void)
{
    char directory[NODE_DIRECTORY_MAX + 1], why[512];
    if (node_directory(directory) && !directory_check(directory, true, why, sizeof why))
        setenv(LAST_LINES_VARIABLE, directory, 1);
}

/* The library that stands in front has variables of its own: the libibverbs after it may be softverbs', too. */
static int move_settings(void)
{
    for (unsigned at = 0; at < HOLDING; at++) {
        settings_around = false;
        const char *value = setting_environment(holding[at]), *own = setting_variable(holding[at]);
        settings_around = true;
        if (value && (setenv(setting_variable(holding[at]), value, 1) || unsetenv(own)))
            return complain_and(EXIT_SELF, "There is not enough memory to prepare the program's environment.");
    }
    return 0;
}

static int preload(void)
{
    char directory[PLACE_PATH_MAX], path[PLACE_PATH_MAX + 32], why[512];
    if (place_libraries(directory, why, sizeof why))
        return complain_and(EXIT_SELF, "%s", why);
    snprintf(path, sizeof path, "%s/libsoftverbs-around.so", directory);
    if (strpbrk(path, " \t\n:"))
        return complain_and(EXIT_SELF, "The dynamic linker can't preload \"%s\": a blank or a colon ends the path.",
                            path);
    if (access(path, R_OK))
        return complain_and(EXIT_SELF, "The library \"%s\" can't be read: %s.", path, strerror(errno));
    keep_lines();
    return prepare_preload(path);
}

int around_prepare(void)
{
    int status = preload();
    return status ? status : move_settings();
}

static int become_around(char **argv)
{
    int status = move_settings();
    return status ? status : become(argv);
}

static struct choice choice;

static int start(char **argv)
{
    return choice.traced ? trace_run(choice.calls, choice.trace_file, become_around, argv) : become_around(argv);
}

/* The file of the stories, which is named here, is under the name that the library reads. */
static int start_told(char **argv)
{
    settings_around = true;
    return told_run(start, argv);
}

static int around(const struct command *command, int argc, char **argv)
{
    const struct option *options = prepare_options(own_options);
    int option, status = 0;
    while (!status && (option = command_option(command, argc, argv, options)) != -1)
        status = take_option(command, options, option, &choice);
    if (!status && choice.tests)
        return optind == argc && argc == 2
                   ? selftest_run(choice.device)
                   : command_misused(command, "--selftest runs a program of its own, and takes no other option.");
    if (!status && optind == argc)
        status = command_misused(command, "It needs a program to run.");
    if (!status)
        status = preload();
    if (status)
        return status;
    return (choice.told ? start_told : start)(argv + optind);
}

const struct command around_command = {
    .name = "around",
    .arguments = "[OPTIONS] [--] PROGRAM [ARGUMENTS]...",
    .summary = "Check, trace and explain a program on this machine's RDMA devices",
    .help = "  --check[=LIST], --check-report FILE, --check-suppressions FILE,\n"
            "  --error-exitcode N, --log LEVEL, --log-file FILE, -q, --trace[=CALLS],\n"
            "  --trace-file FILE: as \"softverbs run\" has them\n"
            "  --script FILE, --inject RULE: disturb the calls as \"softverbs run\" does, by\n"
            "                    rules of calls: errors, delays, signals, other answers\n"
            "  --story FILE      append the stories of queue pairs whose work fails, for\n"
            "                    \"softverbs why --from FILE\", which \"why --join A B\" joins\n"
            "                    with those of the other end; \"-\": print them at the end\n"
            "  --selftest[=DEVICE]  let work fail in eight ways on a device of the machine,\n"
            "                    and print what it says and what the layers see\n"
            "\n"
            "The program runs on the devices that it has without softverbs: a preloaded\n"
            "library is in front of its libibverbs, sees each call, and passes it on. No\n"
            "object is wrapped, and without an option the data path is as it was. What goes\n"
            "past libibverbs is not seen: mlx5dv and efadv, a second copy of libibverbs,\n"
            "static and set-uid programs. Faults, captures and profiles are of softverbs'\n"
            "own devices: \"softverbs run\" has them.\n"
            "\n"
            "Not seen on an adapter: its tests run in front of softverbs' own library, and\n"
            "of Debian's over the kernel's soft RoCE.\n"
            "\n"
            "Exit status: the program's, or as \"softverbs run\".\n",
    .runs_rest = true,
    .letters = "q",
    .run = around,
};
