#include "unopened/hosts.h"

#include <glob.h>
#include <libgen.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "lab/plan.h"
#include "unopened/openings.h"

/* Takes a path such as "/proc/7/root/dev/shm/softverbs-0/table", which it changes. */
static bool is_unopened(char *table)
{
    uint32_t opened;
    return openings_count(dirname(table), &opened) && !opened;
}

static bool is_unopened_host(pid_t holder)
{
    char pattern[64];
    glob_t found = {0};
    snprintf(pattern, sizeof pattern, "/proc/%d/root" LAB_STATE, (int)holder);
    if (access(pattern, F_OK))
        return false;
    snprintf(pattern, sizeof pattern, "/proc/%d/root/dev/shm/*/table", (int)holder);
    int error = glob(pattern, 0, NULL, &found);
    bool unopened = !error || error == GLOB_NOMATCH;
    for (size_t i = 0; !error && i < found.gl_pathc; i++)
        unopened &= is_unopened(found.gl_pathv[i]);
    globfree(&found);
    return unopened;
}

bool unopened_on_hosts(const pid_t *holders, unsigned count)
{
    bool unopened = true;
    for (unsigned i = 0; unopened && i < count; i++)
        unopened = is_unopened_host(holders[i]);
    return unopened;
}
