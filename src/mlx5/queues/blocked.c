#include "mlx5/queues/blocked.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/uncancelled.h"

/* Returns true if the text of /proc/PID/status has the signal among the blocked ones, or has no such line. */
static bool says_blocked(const char *text)
{
    const char *line = strstr(text, "\nSigBlk:");
    uint64_t mask = line ? strtoull(line + sizeof "\nSigBlk:" - 1, NULL, 16) : UINT64_MAX;
    return mask >> (SIGSEGV - 1) & 1;
}

/* A thread that has ended meanwhile blocks nothing. */
static bool blocks(int tasks, const char *thread)
{
    char name[64], text[4096];
    snprintf(name, sizeof name, "%.32s/status", thread);
    int file = openat(tasks, name, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0)
        return false;
    text[length] = 0;
    return says_blocked(text);
}

static bool ask_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *entry;
    bool blocked = !tasks;
    while (!blocked && (entry = readdir(tasks)))
        blocked = *entry->d_name != '.' && blocks(dirfd(tasks), entry->d_name);
    if (tasks)
        closedir(tasks);
    return blocked;
}

bool blocked_by_a_thread(void)
{
    int before = uncancelled_begin();
    bool blocked = ask_threads();
    uncancelled_end(before);
    return blocked;
}
