#include "lab/own_root.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"

int own_root_of(pid_t process)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/root", (int)process);
    return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

bool own_root_enter(int root)
{
    struct stat wanted, now;
    if (!fstat(root, &wanted) && !stat("/", &now) && wanted.st_dev == now.st_dev && wanted.st_ino == now.st_ino)
        return true;
    return !fchdir(root) && !chroot(".");
}

static bool make_private(void)
{
    return !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

/* In a chroot setns(2) leads to the namespace's root, from which all mounts can be reached. */
static bool make_private_from_above(int root)
{
    int space = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    bool above = space >= 0 && !setns(space, CLONE_NEWNS), done = make_private();
    int error = errno;
    close(space);
    if (above && !own_root_enter(root))
        return false;
    errno = error;
    return done;
}

bool own_root_make(void)
{
    char here[PATH_MAX];
    bool known = getcwd(here, sizeof here) && *here == '/';
    int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    bool done = root < 0 ? make_private() : make_private_from_above(root);
    if (root >= 0)
        close(root);
    if (done)
        return (known && !chdir(here)) || !chdir("/");
    return complain_and(
        false, "lab: The mounts of this system can't be made private: %s.%s", strerror(errno),
        own_root_is_chroot()
            ? " The root directory is not a mount point here; \"mount --bind DIRECTORY DIRECTORY\" before "
              "\"chroot DIRECTORY\" makes it one."
            : "");
}

bool own_root_is_chroot(void)
{
    char line[PATH_MAX + 256], point[PATH_MAX];
    FILE *mounts = fopen("/proc/self/mountinfo", "re");
    bool found = false;
    if (!mounts)
        return false;
    while (!found && fgets(line, sizeof line, mounts))
        found = sscanf(line, "%*u %*u %*s %*s %4095s", point) == 1 && !strcmp(point, "/");
    fclose(mounts);
    return !found;
}
