/* Says on the terminal, at the end of the program that `softverbs run` became, that no process has opened a device
 * since it began. Of programs that start no others, such as ls, it says nothing: a user sees what they do. It says
 * nothing either if processes of another run opened a device meanwhile, as the count is the directory's, or if the
 * program ends by a signal or _exit(2). */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "unopened/openings.h"

static bool has_started_others(void)
{
    struct rusage children;
    return !getrusage(RUSAGE_CHILDREN, &children) && children.ru_minflt + children.ru_majflt > 0;
}

/* The directory, if the count is what it was when this process began. */
static const char *find_unopened(const char *value)
{
    int process, length = 0;
    unsigned before;
    uint32_t now;
    if (!value || sscanf(value, "%d %u %n", &process, &before, &length) < 2 || process != getpid())
        return NULL;
    return openings_count(value + length, &now) && now == before ? value + length : NULL;
}

/* A terminal that was stopped (Control-S) keeps no program from its end. */
static bool has_room(void)
{
    struct pollfd terminal = {.fd = STDERR_FILENO, .events = POLLOUT};
    return isatty(STDERR_FILENO) && poll(&terminal, 1, 0) == 1 && (terminal.revents & POLLOUT);
}

static __attribute__((destructor)) void end(void)
{
    const char *directory = has_started_others() ? find_unopened(secure_getenv("SOFTVERBS_OPENINGS")) : NULL;
    if (directory && has_room())
        dprintf(STDERR_FILENO, "softverbs: No process opened a device in %s since \"%s\" began.\n    %s\n", directory,
                program_invocation_short_name, openings_cure(program_invocation_short_name));
}
