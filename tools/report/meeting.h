/* The directory whose processes a command looks at, and the options that all such commands share. */
#pragma once

#include <stdbool.h>

#include "command.h"
#include "ipc/node.h"

struct meeting {
    bool as_json;                           /* --json */
    char directory[NODE_DIRECTORY_MAX + 1]; /* set by meeting_find */
};

/* Ends the table of a command's options. */
#define MEETING_OPTIONS OPTION("json", 'j'), VALUED("dir", 'd'), OPTIONS_END

/* Messages for a directory in which no process meets, or not the process with the number (a long) that was given. */
#define MEETING_NONE "No process has a softverbs device open. Start one: softverbs run -- PROGRAM"
#define MEETING_NO_PROCESS "No process %ld has a softverbs device open here; \"softverbs show\" lists those that have."

/* The lines of the commands' help. */
#define MEETING_HELP_DIR                                                                                               \
    "  --dir DIR         ask the processes that meet in this directory\n"                                              \
    "                    (SOFTVERBS_DIR=DIR)\n"

/* Reads options like command_option, for a table that MEETING_OPTIONS ends, and handles these: --dir sets
 * $SOFTVERBS_DIR. */
int meeting_option(const struct command *, int argc, char **argv, const struct option *, struct meeting *);

/* Sets the directory's name. Returns 0, or the exit status after a message: the name is too long, or a named directory
 * (--dir, which has become $SOFTVERBS_DIR) is missing or can't be such a directory. The default directory may be
 * missing: no process has been there. */
int meeting_find(const struct command *, struct meeting *);
