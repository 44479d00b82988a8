#include "ipc/peer_threads.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text/text.h"
#include "base/uncancelled.h"

/* Reads a file of a thread; the text is empty when it can't be read. */
static void read_file(int tasks, const char *thread, const char *file, char *text, size_t size)
{
    char path[NAME_MAX + sizeof "/syscall"];
    snprintf(path, sizeof path, "%s/%s", thread, file);
    text_read_at(tasks, path, text, size);
}

/* Reads field 3 of stat, after the name. A thread stops and ends where it returns from the kernel: after its call. */
static bool is_stopped(int tasks, const char *thread)
{
    char text[512];
    read_file(tasks, thread, "stat", text, sizeof text);
    const char *name_end = strrchr(text, ')');
    return name_end && name_end[1] && name_end[2] && strchr("TtZX", name_end[2]);
}

/* The file has the number of the call that the thread waits in; -1 outside of any; "running" if it does not wait. */
static bool is_in_another(int tasks, const char *thread, long call)
{
    char text[256], *end;
    read_file(tasks, thread, "syscall", text, sizeof text);
    long number = strtol(text, &end, 10);
    return end != text && number != call;
}

static bool is_elsewhere(int tasks, const char *thread, long call)
{
    return is_stopped(tasks, thread) || is_in_another(tasks, thread, call);
}

static bool look_at_all(DIR *directory, long call)
{
    unsigned threads = 0;
    for (const struct dirent *entry; (entry = readdir(directory));) {
        if (entry->d_name[0] == '.')
            continue;
        if (!is_elsewhere(dirfd(directory), entry->d_name, call))
            return false;
        threads++;
    }
    return threads > 0;
}

static DIR *open_threads(pid_t pid)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    errno = ENOENT;
    return pid > 0 ? opendir(path) : NULL;
}

bool peer_threads_nobody(pid_t pid)
{
    int before = uncancelled_begin();
    DIR *directory = open_threads(pid);
    bool nobody = !directory && errno == ENOENT;
    if (directory)
        closedir(directory);
    uncancelled_end(before);
    return nobody;
}

bool peer_threads_all(pid_t pid, long call)
{
    int before = uncancelled_begin();
    DIR *directory = open_threads(pid);
    bool all = directory && look_at_all(directory, call);
    if (directory)
        closedir(directory);
    uncancelled_end(before);
    return all;
}

/* Reads field 3 of the process's stat. */
bool peer_threads_is_stopped(pid_t pid)
{
    char path[32], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int before = uncancelled_begin();
    text_read_at(AT_FDCWD, path, text, sizeof text);
    uncancelled_end(before);
    const char *name_end = strrchr(text, ')');
    return name_end && name_end[1] && (name_end[2] == 'T' || name_end[2] == 't');
}
