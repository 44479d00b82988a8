#include "meeting.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/settings.h"
#include "config/settings.h"
#include "ipc/node.h"
#include "ipc/place/directory.h"

/* A mistyped name would look like a directory without processes. */
static int check_named(const char *directory)
{
    char why[512];
    struct stat status;
    if (lstat(directory, &status) && errno == ENOENT)
        complain("There is no directory %s: no process has met another there, or the name is wrong.", directory);
    else if (directory_check(directory, false, why, sizeof why))
        complain("%s", why);
    else
        return EXIT_OK;
    return EXIT_NEGATIVE;
}

int meeting_option(const struct command *command, int argc, char **argv, const struct option *options,
                   struct meeting *meeting)
{
    int option;
    while ((option = command_option(command, argc, argv, options)) == 'j' || option == 'd') {
        meeting->as_json |= option == 'j';
        if (option == 'd' && setenv(setting_lines[SETTING_DIR].variable, optarg, 1))
            exit(EXIT_NEGATIVE); /* no memory */
    }
    return option;
}

int meeting_find(const struct command *command, struct meeting *meeting)
{
    const char *named = setting_environment(SETTING_DIR);
    if (!node_directory(meeting->directory))
        return command_misused(command, "The directory's name is too long: $SOFTVERBS_DIR may have %d bytes.",
                               NODE_DIRECTORY_MAX);
    return named && *named ? check_named(meeting->directory) : EXIT_OK;
}
