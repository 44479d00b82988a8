/* The environment of programs under softverbs: what `run` gives its program and `env` prints. */
#ifndef TOOLS_PREPARE_H
#define TOOLS_PREPARE_H

#include <stdbool.h>

#include "command.h"

enum {
    PREPARE_NO_PATHS = 256,
    PREPARE_DEVICES,
    PREPARE_LOG,
    PREPARE_LOG_FILE,
    PREPARE_DIRECTORY,
    PREPARE_NETWORK,
    PREPARE_CAPTURE,
    PREPARE_FAULT,
    PREPARE_COUNTERS,
    PREPARE_LINK_LAYER,
    PREPARE_OPTIONS_END, /* free for others */
};

/* Rows of a table for command_option. */
#define PREPARE_OPTIONS                                                                                                \
    {"quiet", no_argument, NULL, 'q'}, {"no-paths", no_argument, NULL, PREPARE_NO_PATHS},                              \
        {"devices", required_argument, NULL, PREPARE_DEVICES}, {"log", required_argument, NULL, PREPARE_LOG},          \
        {"log-file", required_argument, NULL, PREPARE_LOG_FILE}, {"dir", required_argument, NULL, PREPARE_DIRECTORY},  \
        {"net", required_argument, NULL, PREPARE_NETWORK}, {"capture", required_argument, NULL, PREPARE_CAPTURE},      \
        {"fault", required_argument, NULL, PREPARE_FAULT}, {"counters", required_argument, NULL, PREPARE_COUNTERS},    \
        {"link-layer", required_argument, NULL, PREPARE_LINK_LAYER},                                                   \
    {                                                                                                                  \
        "help", no_argument, NULL, 'h'                                                                                 \
    }

/* An option of these, other than --no-paths: sets its variable. 0, or the exit status after a sentence. */
int prepare_option(const struct command *, int option, const char *value);

/* Behind the options: sets the rest, and sees that the directory can be entered. 0, or the exit status after a
 * sentence. */
int prepare_environment(const struct command *, bool paths);

#endif
