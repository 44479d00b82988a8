/* softverbs: the table of subcommands, which dispatches them and makes the help. */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text/suggest.h"
#include "command.h"
#include "diag/clean.h"
#include "doctor/program.h"
#include "print/screen.h"

static const struct command *const commands[] = {
    &run_command,   &around_command,  &env_command,     &devices_command, &show_command,   &stat_command,
    &top_command,   &sysfs_command,   &event_command,   &inject_command,  &trace_command,  &replay_command,
    &sweep_command, &doctor_command,  &ping_command,    &explain_command, &decode_command, &draw_command,
    &live_command,  &missing_command, &why_command,     &report_command,  &checks_command, &lab_command,
    &on_command,    &version_command, &adverse_command, &demo_command,    &sim_command,
};

enum { COMMANDS = sizeof commands / sizeof *commands };

static const struct command *find_command(const char *name)
{
    for (int i = 0; i < COMMANDS; i++)
        if (!strcmp(commands[i]->name, name))
            return commands[i];
    return NULL;
}

static void print_overview(FILE *to)
{
    fputs("Usage: softverbs COMMAND [OPTIONS] [ARGUMENTS]\n\n"
          "RDMA verbs without RDMA hardware: runs unmodified programs on a software device.\n\n",
          to);
    for (int i = 0; i < COMMANDS; i++)
        fprintf(to, "  %-9s %s\n", commands[i]->name, commands[i]->summary);
    fputs("  help      Explain a command: softverbs help COMMAND\n", to);
}

static void print_help(const struct command *command)
{
    printf("Usage: softverbs %s%s%s\n\n%s.\n", command->name, *command->arguments ? " " : "", command->arguments,
           command->summary);
    if (command->print_options || *command->help)
        puts("");
    if (command->print_options)
        command->print_options(stdout);
    fputs(command->help, stdout);
}

void complain(const char *format, ...)
{
    char sentence[2048];
    va_list rest;
    va_start(rest, format);
    vsnprintf(sentence, sizeof sentence, format, rest);
    va_end(rest);
    clean_text(sentence);
    size_t at = (size_t)fprintf(stderr, "softverbs: ");
    screen_wrap(stderr, screen_width(stderr), at, 4, sentence);
}

int command_misused(const struct command *command, const char *format, ...)
{
    char sentence[512];
    va_list rest;
    va_start(rest, format);
    vsnprintf(sentence, sizeof sentence, format, rest);
    va_end(rest);
    const char *stop = *sentence && !strchr(".!?", sentence[strlen(sentence) - 1]) ? "." : "";
    return complain_and(EXIT_USAGE, "%s: %s%s See \"softverbs help %s\".", command->name, sentence, stop,
                        command->name);
}

static int output_error; /* the errno of output that can't be written; 0: it can, or the errno is not known */

bool output_flush(void)
{
    errno = 0;
    if (fflush(stdout) && !output_error)
        output_error = errno;
    return !output_error && !ferror(stdout);
}

/* Output that could not be written (a full disk) is an error, as for coreutils; a reader that has gone is no error. */
static int finish(int status)
{
    if (output_flush() || output_error == EPIPE)
        return status;
    return complain_and(status ? status : EXIT_NEGATIVE, "The output can't be written%s%s.", output_error ? ": " : "",
                        output_error ? strerror(output_error) : "");
}

/* A leading + ends the options at the first argument that is no option; the : distinguishes a missing value from an
 * unknown option. */
int command_option(const struct command *command, int argc, char **argv, const struct option *options)
{
    char letters[32];
    opterr = 0;
    snprintf(letters, sizeof letters, "%s:h%s", command->runs_rest ? "+" : "",
             command->letters ? command->letters : "");
    int option = getopt_long(argc, argv, letters, options, NULL);
    if (option == 'h') {
        print_help(command);
        exit(finish(EXIT_OK));
    }
    if (option != '?' && option != ':')
        return option;
    bool letter = option == '?' && optopt > 0 && optopt < 256 && optopt != 'h';
    const char *what = letter ? (char[3]){'-', (char)optopt} : argv[optind - 1];
    command_misused(command, option == ':' ? "The option %s needs a value." : "There is no option %s.", what);
    if (command->failed)
        command->failed(EXIT_USAGE);
    exit(EXIT_USAGE);
}

/* Complains of an unknown command or option, and suggests a command that is like it. */
static int no_command(const char *name)
{
    char path[PATH_MAX];
    struct suggestion suggestion = suggest_begin(name);
    for (int i = 0; i < COMMANDS; i++)
        suggest_try(&suggestion, commands[i]->name);
    const char *what = *name == '-' ? "option" : "command";
    if (suggestion.meant)
        complain("There is no %s \"%s\". Did you mean \"%s\"? See \"softverbs --help\".", what, name, suggestion.meant);
    else if (!strchr(name, '/') && program_find(name, path))
        complain("There is no command \"%s\". Did you mean \"softverbs run -- %s\"? See \"softverbs --help\".", name,
                 name);
    else
        complain("There is no %s \"%s\". See \"softverbs --help\".", what, name);
    return EXIT_USAGE;
}

static bool is_help(const char *name)
{
    return !strcmp(name, "help") || !strcmp(name, "--help") || !strcmp(name, "-h");
}

static int help(int argc, char **argv)
{
    const struct command *command = argc > 1 ? find_command(argv[1]) : NULL;
    if (argc < 2 || is_help(argv[1]))
        print_overview(stdout);
    else if (command)
        print_help(command);
    else
        return no_command(argv[1]);
    return EXIT_OK;
}

int main(int argc, char **argv)
{
    static char longest_help[1 << 16];
    if (!isatty(STDOUT_FILENO)) /* so that a full disk is met by the last flush, which knows the errno */
        setvbuf(stdout, longest_help, _IOFBF, sizeof longest_help);
    if (argc < 2) {
        print_overview(stderr);
        return EXIT_USAGE;
    }
    const char *name = argv[1];
    if (is_help(name))
        return finish(help(argc - 1, argv + 1));
    bool version = !strcmp(name, "--version") || !strcmp(name, "-V");
    const struct command *command = find_command(version ? "version" : name);
    if (!command)
        return no_command(name);
    int status = command->run(command, argc - 1, argv + 1);
    if (status && command->failed)
        command->failed(status);
    return finish(status);
}
