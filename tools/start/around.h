/* The environment of a program in front of whose libibverbs the layers are: `softverbs around` and `softverbs env
 * --around`. */
#pragma once

#include "command.h"

/* Sets the variable of an option, with its value in optarg, or refuses it: `options` has its name. 0, or the exit
 * status after a sentence. */
int around_option(const struct command *, const struct option *options, int option);

/* Call it after all options: has the library preloaded, and moves the settings to its variables. 0, or the exit status
 * after a sentence. */
int around_prepare(void);
