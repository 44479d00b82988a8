/* A process for tests that runs as 65534 in a user namespace with no other users, so that the kernel shows all others
 * as 65534, too. Images of containers whose user is "nobody" do likewise. */
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534, NOBODY_OUTSIDE = 54321 /* root becomes this user first */, NOBODY_SKIPPED = 77 };

static inline bool nobody_write(const char *path, const char *text)
{
    int file = open(path, O_WRONLY | O_CLOEXEC);
    bool written = file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text);
    if (file >= 0)
        close(file);
    return written;
}

/* Makes this process nobody; root is NOBODY_OUTSIDE first, and gives it files beforehand. False: no user namespaces. */
static inline bool nobody_become(void)
{
    char map[64];
    if (!geteuid() && (setgid(NOBODY_OUTSIDE) || setuid(NOBODY_OUTSIDE)))
        return false;
    prctl(PR_SET_DUMPABLE, 1); /* or /proc/self would be root's */
    snprintf(map, sizeof map, "%d %u 1", NOBODY, (unsigned)geteuid());
    return !unshare(CLONE_NEWUSER) && nobody_write("/proc/self/uid_map", map) && geteuid() == NOBODY;
}

/* Runs the body in a child process that has become nobody, and returns its answer; NOBODY_SKIPPED: it can't. */
static inline int nobody_run(int (*body)(void *), void *context)
{
    int status = 0;
    pid_t child = fork();
    if (!child)
        _exit(nobody_become() ? body(context) : NOBODY_SKIPPED);
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
