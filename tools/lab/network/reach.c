#include "lab/network/reach.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/text/text.h"
#include "base/user.h"
#include "command.h"
#include "lab/follow_child.h"
#include "lab/own_root.h"
#include "lab/rights.h"
#include "place.h"

/* Makes the address of a socket with a lab's name, which the kernel frees when the lab's process ends. */
static socklen_t name_address(struct sockaddr_un *address, const char *name)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    int length = snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "softverbs-lab/%u/%s", geteuid(), name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

bool reach_take_name(const char *name)
{
    struct sockaddr_un address;
    socklen_t length = name_address(&address, name);
    int holder = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return !bind(holder, (struct sockaddr *)&address, length) && !listen(holder, 8);
}

/* Returns true if this process is in that namespace. */
static bool is_own(int space, const char *name)
{
    char path[64];
    struct stat own, other;
    snprintf(path, sizeof path, "/proc/self/ns/%s", name);
    return !stat(path, &own) && !fstat(space, &other) && own.st_ino == other.st_ino;
}

/* Returns whether the process has the same process namespace and files. A container may share our network, and so the
 * names of sockets, and a program of its files must not run with our rights. */
static bool is_of_this_system(pid_t process)
{
    char path[64];
    struct stat root, other;
    snprintf(path, sizeof path, "/proc/%d/ns/pid", (int)process);
    int space = open(path, O_RDONLY | O_CLOEXEC);
    bool same = space >= 0 && is_own(space, "pid");
    if (space >= 0)
        close(space);
    snprintf(path, sizeof path, "/proc/%d/root", (int)process);
    return same && !stat("/", &root) && !stat(path, &other) && root.st_dev == other.st_dev &&
           root.st_ino == other.st_ino;
}

/* The process that took the name; 0: no process of this user and system has it. */
static pid_t find_outer(const char *name)
{
    struct sockaddr_un address;
    socklen_t length = name_address(&address, name), size = sizeof(struct ucred);
    struct ucred whose = {0};
    int asker = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(asker, (struct sockaddr *)&address, length) ||
        getsockopt(asker, SOL_SOCKET, SO_PEERCRED, &whose, &size) || !user_owns_process(whose.uid, whose.pid) ||
        !is_of_this_system(whose.pid))
        whose.pid = 0;
    close(asker);
    return whose.pid;
}

/* Process 1 of the lab is the only child of the process outside. */
static pid_t find_keeper(pid_t outer)
{
    char path[64], text[32];
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)outer, (int)outer);
    text_read_at(AT_FDCWD, path, text, sizeof text);
    return (pid_t)strtol(text, NULL, 10);
}

/* Enters the lab's namespaces; the working directory keeps its path. */
static bool enter_spaces(pid_t keeper)
{
    static const char *const names[] = {"user", "pid", "mnt"};
    enum { SPACES = sizeof names / sizeof *names };
    int spaces[SPACES];
    char path[64], here[PATH_MAX], self[PLACE_PATH_MAX];
    const char *directory = getcwd(here, sizeof here);
    int root = own_root_of(keeper);
    if (root < 0 || place_self(self))
        return false;
    for (int i = 0; i < SPACES; i++) {
        snprintf(path, sizeof path, "/proc/%d/ns/%s", (int)keeper, names[i]);
        spaces[i] = open(path, O_RDONLY | O_CLOEXEC);
        if (spaces[i] < 0)
            return false;
    }
    for (int i = 0; i < SPACES; i++)
        if (!is_own(spaces[i], names[i]) && setns(spaces[i], 0))
            return false;
    if (!own_root_enter(root) || close(root))
        return false;
    if (directory)
        (void)!chdir(directory);
    return true;
}

bool reach_enter(const char *name)
{
    pid_t outer = find_outer(name), keeper = outer ? find_keeper(outer) : 0;
    if (!keeper || !enter_spaces(keeper))
        return false;
    pid_t inner = fork();
    if (inner > 0)
        _exit(follow_child(inner));
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    return !inner && (geteuid() == 0 || rights_keep());
}
