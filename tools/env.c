/* softverbs env: prints the environment of `softverbs run`, for shells, images, services and workflows. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "doctor/program.h"
#include "place.h"
#include "prepare.h"
#include "print/emit.h"
#include "settings.h"
#include "start/around.h"

enum { OPTION_DOCKER = PREPARE_OPTIONS_END, OPTION_GITHUB, OPTION_SYSTEMD, OPTION_JSON, OPTION_AROUND };

static const struct option formats[] = {OPTION("docker", OPTION_DOCKER),   OPTION("github", OPTION_GITHUB),
                                        OPTION("systemd", OPTION_SYSTEMD), OPTION("json", OPTION_JSON),
                                        OPTION("around", OPTION_AROUND),   {0}};

/* Prints the value between quotes; a character in `special` follows a backslash. */
static void print_quoted(const char *value, const char *special)
{
    putchar('"');
    for (; *value; value++) {
        if (strchr(special, *value))
            putchar('\\');
        putchar(*value);
    }
    putchar('"');
}

/* Between single quotes only the quote itself is special. */
static void print_for_shell(const char *value)
{
    putchar('\'');
    for (; *value; value++)
        if (*value == '\'')
            fputs("'\\''", stdout);
        else
            putchar(*value);
    putchar('\'');
}

static void print_variable(int format, const char *name, size_t length, const char *value)
{
    static const char *const before[] = {"ENV ", "", ""};
    printf("%s%.*s=", format ? before[format - OPTION_DOCKER] : "export ", (int)length, name);
    if (!format)
        print_for_shell(value);
    else if (format == OPTION_GITHUB)
        fputs(value, stdout);
    else
        print_quoted(value, format == OPTION_DOCKER ? "\"\\$" : "\"\\$`");
    puts("");
}

/* Returns whether `entry`, NAME=VALUE, is also in the other environment. */
static bool was_there(const char *entry, char **other)
{
    for (; *other; other++)
        if (!strcmp(*other, entry))
            return true;
    return false;
}

/* The directory of this command, for scripts that evaluate the output and then call it; "": $PATH leads to it. */
static char own_directory[PLACE_PATH_MAX];

/* Adds the directory of this command at the end of $PATH. 0, or the exit status. */
static int lead_to_itself(void)
{
    char *value, path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", own_directory, sizeof own_directory - 1);
    if (length <= 0 || !getenv("PATH") || program_find("softverbs", path)) {
        *own_directory = 0;
        return 0;
    }
    *strrchr(own_directory, '/') = 0;
    if (asprintf(&value, "%s:%s", getenv("PATH"), own_directory) < 0)
        return EXIT_SELF;
    int status = setenv("PATH", value, 1) ? EXIT_SELF : 0;
    free(value);
    return status;
}

/* A workflow has a separate file for $PATH: its lines are directories, which are put in front. */
static int print_path(int format, const char *value)
{
    if (format != OPTION_GITHUB) {
        print_variable(format, "PATH", 4, value);
        return 0;
    }
    FILE *file = fopen(getenv("GITHUB_PATH"), "ae");
    if (!file)
        return complain_and(EXIT_SELF, "The file that $GITHUB_PATH names can't be written: %s.", strerror(errno));
    if (*own_directory)
        fprintf(file, "%s\n", own_directory);
    fprintf(file, "%.*s\n", (int)strcspn(value, ":"), value);
    return fclose(file) ? EXIT_SELF : 0;
}

static int print_environment(int format, char **before)
{
    int status = 0;
    json_t *object = format == OPTION_JSON ? json_object() : NULL;
    for (char **entry = environ; !status && *entry; entry++) {
        size_t length = strcspn(*entry, "=");
        bool ours = settings_is_one(*entry);
        if (!(*entry)[length] || (!ours && was_there(*entry, before)))
            continue;
        if (strchr(*entry, '\n')) {
            complain("The value of %.*s has more than one line.", (int)length, *entry);
            status = EXIT_SELF;
        } else if (object) {
            char *name = strndup(*entry, length);
            json_object_set_new(object, name ? name : "", emit_text(*entry + length + 1));
            free(name);
        } else if (!strncmp(*entry, "PATH=", 5)) {
            status = print_path(format, *entry + 5);
        } else {
            print_variable(format, *entry, length, *entry + length + 1);
        }
    }
    if (object)
        emit(object);
    return status;
}

/* A workflow's file takes the place of stdout. */
static int begin_github(const struct command *command)
{
    const char *file = getenv("GITHUB_ENV");
    if (!file || !getenv("GITHUB_PATH"))
        return command_misused(command,
                               "$GITHUB_ENV and $GITHUB_PATH name no files: this is not a step of a workflow.");
    if (freopen(file, "ae", stdout))
        return 0;
    return complain_and(EXIT_SELF, "The file that $GITHUB_ENV names can't be written: %s.", strerror(errno));
}

/* The strings stay where they are: setenv does not free a string that it replaces. */
static char **copy_of_environment(void)
{
    size_t count = 0;
    while (environ[count])
        count++;
    char **copy = calloc(count + 1, sizeof *copy);
    for (size_t i = 0; copy && i < count; i++)
        copy[i] = environ[i];
    return copy;
}

static int format; /* an option of those above; 0: for a shell */

/* Makes eval fail: its status is its input's, so a script with -e, as in most jobs, ends here and does not continue
 * without softverbs. Nothing else is in the output then. */
static void fail_shell(int status)
{
    if (!format)
        printf("(exit %d)\n", status);
}

/* The option --around decides which other options are allowed, wherever it is. */
static bool is_around(int argc, char **argv)
{
    bool found = false;
    for (int at = 1; at < argc; at++)
        found |= !strcmp(argv[at], "--around");
    return found;
}

static int env(const struct command *command, int argc, char **argv)
{
    const struct option *options = prepare_options(formats);
    bool paths = true, around = is_around(argc, argv);
    int option, status = 0;
    char **before = copy_of_environment();
    while (!status && (option = command_option(command, argc, argv, options)) != -1)
        if (option >= PREPARE_OPTIONS_END)
            format = option == OPTION_AROUND ? format : option;
        else if (around)
            status = around_option(command, options, option);
        else if (option == PREPARE_NO_PATHS)
            paths = false;
        else
            status = prepare_option(command, option, optarg);
    if (!status && optind < argc)
        status = command_misused(command, "It takes options only; \"softverbs run\" runs programs.");
    if (!status && before && format) /* for uses without a terminal: in jobs, images and services */
        status = setenv(setting_lines[SETTING_LOG].variable, "warn", 0) ? EXIT_SELF : 0;
    if (!status && before && format == OPTION_GITHUB)
        status = setenv(setting_lines[SETTING_LOG_FORMAT].variable, "github", 0) ? EXIT_SELF : 0;
    if (!status && before)
        status = around ? around_prepare() : prepare_environment(command, paths);
    if (!status && before && (!format || format == OPTION_GITHUB))
        status = lead_to_itself();
    if (!status && format == OPTION_GITHUB)
        status = begin_github(command);
    if (!status && before)
        status = print_environment(format, before);
    free(before);
    return status;
}

const struct command env_command = {
    .name = "env",
    .arguments = "[--docker|--github|--systemd|--json] [--around] [OPTIONS]",
    .summary = "Print what run gives, for shells, images, services and workflows",
    .help = "Without an option it prints lines for a shell:  eval \"$(softverbs env)\"\n"
            "\n"
            "  --docker          print lines for a Dockerfile; use it with --no-paths, since\n"
            "                    a running system makes the paths\n"
            "  --github          append to the files that $GITHUB_ENV and $GITHUB_PATH name,\n"
            "                    for the later steps of a job: their mistakes are warnings of\n"
            "                    the workflow and are in the summary of their step\n"
            "                    (SOFTVERBS_LOG_FORMAT=github)\n"
            "  --systemd         print lines for an EnvironmentFile= of a service\n"
            "  --json            print an object of names and values\n"
            "  --around          print what \"softverbs around\" gives, and take its options\n"
            "\n"
            "The first four set SOFTVERBS_LOG=warn if it is unset, as \"softverbs run\" does in\n"
            "a job (CI is set), so that the log has the mistakes of a program; --log and\n"
            "--quiet override that.\n"
            "\n"
            "It takes all options of \"softverbs run\", with the same meaning. The lines are\n"
            "valid until the machine starts anew: the paths below /dev/infiniband and\n"
            "/sys/class are in /dev/shm.\n",
    .letters = "q",
    .run = env,
    .failed = fail_shell,
};
