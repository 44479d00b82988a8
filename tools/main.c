/* softverbs: the table of subcommands, which is the dispatcher and the help at once. */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "diag/clean.h"

static const struct command *const commands[] = {
    &run_command,    &env_command,  &devices_command, &show_command,   &stat_command,    &event_command,
    &doctor_command, &ping_command, &explain_command, &decode_command, &missing_command, &version_command,
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
    if (*command->help)
        printf("\n%s", command->help);
}

void complain(const char *format, ...)
{
    char sentence[2048];
    va_list rest;
    va_start(rest, format);
    vsnprintf(sentence, sizeof sentence, format, rest);
    va_end(rest);
    clean_text(sentence);
    fprintf(stderr, "softverbs: %s\n", sentence);
}

int command_misused(const struct command *command, const char *format, ...)
{
    char sentence[512];
    va_list rest;
    va_start(rest, format);
    vsnprintf(sentence, sizeof sentence, format, rest);
    va_end(rest);
    complain("%s: %s See \"softverbs help %s\".", command->name, sentence, command->name);
    return EXIT_USAGE;
}

/* The leading + ends the options at the first argument that is none; the : tells a missing value from an unknown
 * option. */
int command_option(const struct command *command, int argc, char **argv, const struct option *options)
{
    char letters[32];
    opterr = 0;
    snprintf(letters, sizeof letters, "+:h%s", command->letters ? command->letters : "");
    int option = getopt_long(argc, argv, letters, options, NULL);
    if (option == 'h') {
        print_help(command);
        exit(EXIT_OK);
    }
    if (option != '?' && option != ':')
        return option;
    bool letter = option == '?' && optopt > 0 && optopt < 256 && optopt != 'h';
    const char *what = letter ? (char[3]){'-', (char)optopt} : argv[optind - 1];
    command_misused(command, option == ':' ? "The option %s needs a value." : "There is no option %s.", what);
    exit(EXIT_USAGE);
}

static int help(int argc, char **argv)
{
    const struct command *command = argc > 1 ? find_command(argv[1]) : NULL;
    if (argc < 2)
        print_overview(stdout);
    else if (command)
        print_help(command);
    else
        complain("There is no command \"%s\". See \"softverbs --help\".", argv[1]);
    return argc < 2 || command ? EXIT_OK : EXIT_USAGE;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_overview(stderr);
        return EXIT_USAGE;
    }
    const char *name = argv[1];
    if (!strcmp(name, "help") || !strcmp(name, "--help") || !strcmp(name, "-h"))
        return help(argc - 1, argv + 1);
    const struct command *command = find_command(!strcmp(name, "--version") ? "version" : name);
    if (!command) {
        complain("There is no %s \"%s\". See \"softverbs --help\".", *name == '-' ? "option" : "command", name);
        return EXIT_USAGE;
    }
    return command->run(command, argc - 1, argv + 1);
}
