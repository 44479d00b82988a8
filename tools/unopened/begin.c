#include "unopened/begin.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/settings.h"
#include "ipc/node.h"
#include "unopened/openings.h"

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Returns whether the program is a shell that /etc/shells lists. */
static bool is_shell(const char *program)
{
    bool found = false;
    for (const char *shell; !found && (shell = getusershell());)
        found = !strcmp(base_of(shell), base_of(program));
    endusershell();
    return found;
}

bool unopened_is_wanted(char *const *program)
{
    const char *log = setting_environment(SETTING_LOG);
    return isatty(STDERR_FILENO) && !(log && !strcmp(log, "none")) && (program[1] || !is_shell(program[0]));
}

void unopened_begin(char *const *program)
{
    char directory[NODE_DIRECTORY_MAX + 1], value[sizeof directory + 32];
    uint32_t count;
    unsetenv(setting_lines[SETTING_OPENINGS].variable);
    if (!unopened_is_wanted(program) || !node_directory(directory) || !openings_count(directory, &count))
        return;
    snprintf(value, sizeof value, "%d %u %s", (int)getpid(), count, directory);
    setenv(setting_lines[SETTING_OPENINGS].variable, value, 1);
}
