#include "lab/own_root.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "command.h"

static bool make_private(void)
{
    return !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

/* Leaves the chroot for the namespace's root, as setns(2) does; the working directory is the chroot's. */
static bool leave_chroot(void)
{
    int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int space = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    bool left = root >= 0 && space >= 0 && !setns(space, CLONE_NEWNS) && !fchdir(root);
    int error = errno;
    close(root);
    close(space);
    errno = error;
    return left;
}

/* Makes a mount of the working directory, and that mount the root of the namespace. */
static bool make_root(void)
{
    char path[PATH_MAX];
    return getcwd(path, sizeof path) && *path == '/' && !mount(path, path, NULL, MS_BIND | MS_REC, NULL) &&
           !chdir(path) && !syscall(SYS_pivot_root, ".", ".") && !umount2(".", MNT_DETACH);
}

bool own_root_make(void)
{
    char here[PATH_MAX];
    bool known = getcwd(here, sizeof here) && *here == '/';
    if (make_private())
        return true;
    if (errno == EINVAL && leave_chroot() && make_private() && make_root())
        return !chdir(known ? here : "/") || !chdir("/");
    complain("lab: The mounts of this system can't be made private: %s.%s", strerror(errno),
             own_root_is_chroot()
                 ? " The root directory is no mount point here; \"mount --bind DIRECTORY DIRECTORY\" before "
                   "\"chroot DIRECTORY\" makes it one."
                 : "");
    return false;
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
