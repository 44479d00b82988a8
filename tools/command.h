/* The subcommands, and what they share: options, complaints, help. */
#pragma once

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>

/* Exit statuses. */
enum {
    EXIT_OK = 0,
    EXIT_NEGATIVE = 1,         /* a negative answer, such as an unknown number, or a lack of the machine */
    EXIT_USAGE = 2,            /* a command, option or argument that does not exist */
    EXIT_SELF = 125,           /* run: softverbs itself could not do its part; the program was not started */
    EXIT_NOT_EXECUTABLE = 126, /* run: the program can't be executed, as in shells */
    EXIT_NOT_FOUND = 127,      /* run: there is no such program */
};

struct command {
    const char *name;
    const char *arguments;         /* as shown after the name */
    const char *summary;           /* one line */
    const char *help;              /* the rest of `softverbs help NAME`, ending in a newline; "": no rest */
    void (*print_options)(FILE *); /* prints the part before `help`; NULL: no such part */
    bool runs_rest;      /* its first argument begins the command line of another program, whose options are not its */
    const char *letters; /* its options that are one letter, as getopt(3) takes them; NULL: no such options */
    int (*run)(const struct command *, int argc, char **argv); /* argv[0] is the name; returns the exit status */
    void (*failed)(int status); /* called before the command ends with a status other than 0; NULL: no call */
};

extern const struct command run_command, env_command, devices_command, show_command, stat_command, sysfs_command,
    event_command, inject_command, sweep_command, doctor_command, explain_command, version_command, missing_command,
    decode_command, draw_command, live_command, ping_command, trace_command, why_command, replay_command,
    report_command, checks_command, lab_command, on_command, adverse_command, top_command, demo_command, around_command,
    sim_command;

/* clang-format off */
/* Rows of a table for command_option: an option without a value, one with a value, and the last rows of each table. */
#define OPTION(name, value) {name, no_argument, NULL, value}
#define VALUED(name, value) {name, required_argument, NULL, value}
#define OPTIONS_END OPTION("help", 'h'), {0}
/* clang-format on */

/* The next option of the command, as getopt_long gives it, wherever it is among the arguments (but see runs_rest); -1
 * after the last. --help is answered here and ends the process with EXIT_OK, an unknown option with a sentence and
 * EXIT_USAGE. */
int command_option(const struct command *, int argc, char **argv, const struct option *);

/* Writes a sentence on stderr after the command's name, and where to read more. Returns EXIT_USAGE. */
int command_misused(const struct command *, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes what was printed until now, for a command that continues. False: it can't be written, or its reader has gone,
 * so the command may end; main() says why, and sets the exit status. */
bool output_flush(void);

/* Writes "softverbs: " and a sentence on stderr; characters that would control a terminal become question marks. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Complains; its value is `status`. */
#define complain_and(status, ...) (complain(__VA_ARGS__), (status))
