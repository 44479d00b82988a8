/* The environment of programs under softverbs: what `run` gives its program and `env` prints. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "command.h"
#include "config/settings.h"

enum {
    PREPARE_SETTINGS = 256, /* plus a number of enum setting */
    PREPARE_NO_PATHS = PREPARE_SETTINGS + SETTINGS,
    PREPARE_OPTIONS_END, /* from here on for the command's own options */
};

/* The command's own options, which end in a row of zeroes, and then the options of `run`; for command_option. */
const struct option *prepare_options(const struct option *own);

/* Prints the part of the command's help about the options of `run`. */
void prepare_print_help(FILE *);

/* Sets the variable of an option of `run`, other than --no-paths. 0, or the exit status after a sentence. */
int prepare_option(const struct command *, int option, const char *value);

/* Adds a library to the front of those that the dynamic linker preloads. 0, or the exit status after a sentence. */
int prepare_preload(const char *path);

/* Call it after all options: sets the rest, and checks that the directory where processes meet can be opened. 0, or the
 * exit status after a sentence. */
int prepare_environment(const struct command *, bool paths);
