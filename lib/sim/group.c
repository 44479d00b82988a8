#include "group.h"

#include <poll.h>
#include <stdbool.h>

#include "raw.h"
#include "sim/choose.h"
#include "token.h"

enum { END_MS = 10000, MOST = sizeof((struct group *)0)->processes / sizeof(pid_t) };

static bool is_meant(pid_t process, pid_t to)
{
    if (process == token_process)
        return false;
    return to > 0 ? process == to : to == -1 || RAW(getpgid, process) == (to ? -to : RAW(getpgid, 0));
}

static bool has(const struct group *group, pid_t process)
{
    for (unsigned i = 0; i < group->count; i++)
        if (group->processes[i] == process)
            return true;
    return false;
}

void group_find(struct group *group, pid_t to)
{
    group->count = 0;
    for (unsigned i = 0; i < SIM_THREADS && group->count < MOST; i++) {
        const struct sim_thread *thread = &token_run->threads[i];
        if (thread->state != SIM_FREE && !has(group, thread->pid) && is_meant(thread->pid, to))
            group->processes[group->count++] = thread->pid;
    }
}

static void await(pid_t process)
{
    struct pollfd end = {(int)RAW(pidfd_open, process, 0), POLLIN, 0};
    if (end.fd < 0)
        return;
    RAW(poll, &end, 1, END_MS);
    RAW(close, end.fd);
}

/* The launcher awaits the last one, and looks at the status of all. */
void group_await(const struct group *group)
{
    for (unsigned i = 0; i + 1 < group->count; i++) {
        await(group->processes[i]);
        sim_remove(token_run, group->processes[i], 0);
    }
    if (group->count)
        token_await_end(group->processes[group->count - 1]);
}
