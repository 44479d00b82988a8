#include "ipc/place/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/settings.h"
#include "base/text/text.h"
#include "base/user.h"
#include "ipc/node.h"
#include "ipc/place/userdir.h"
#include "ipc/table.h"

enum { NAME_SIZE = 80 };

static bool has_table(const char *directory)
{
    char path[NODE_DIRECTORY_MAX + 32];
    snprintf(path, sizeof path, "%s/table", directory);
    return !access(path, F_OK);
}

/* Returns true if there is room for a table and a few sockets. A tmpfs without a limit reports 0 blocks. */
static bool has_room(const char *base)
{
    struct statvfs status;
    return statvfs(base, &status) || !status.f_blocks ||
           (uint64_t)status.f_bavail * status.f_frsize >= sizeof(struct table_file) + (64 << 10);
}

/* Writes the directory below the base to `to`, and makes one if another user has its name. Processes that do so at the
 * same time choose different names, and agree on one because each waits until all have made theirs. */
static bool settle(const char *base, const char *name, char *to)
{
    char plain[NODE_DIRECTORY_MAX + 1];
    snprintf(plain, sizeof plain, "%s/%s", base, name);
    if (userdir_find(base, name, to, NODE_DIRECTORY_MAX + 1) || !strcmp(to, plain))
        return true;
    if (!*to || mkdir(to, 0700))
        return false;
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    return userdir_find(base, name, to, NODE_DIRECTORY_MAX + 1);
}

/* Where processes have met before, they meet again, although another place may have got room since. */
bool node_directory(char *to)
{
    const char *named = setting_environment(SETTING_DIR), *bases[USERDIR_BASES];
    char name[NAME_SIZE];
    if (named && *named)
        return snprintf(to, NODE_DIRECTORY_MAX + 1, "%s", named) <= NODE_DIRECTORY_MAX;
    snprintf(name, sizeof name, "softverbs-%u-%llu-%llu", (unsigned)geteuid(), userdir_namespace("net"),
             userdir_namespace("user"));
    unsigned count = userdir_bases(bases);
    for (unsigned i = 0; i < count; i++)
        if (userdir_find(bases[i], name, to, NODE_DIRECTORY_MAX + 1) && has_table(to))
            return true;
    for (unsigned i = 0; i < count; i++)
        if (has_room(bases[i]) && settle(bases[i], name, to))
            return true;
    return snprintf(to, NODE_DIRECTORY_MAX + 1, "%s/%s", count ? bases[0] : "/tmp", name) <= NODE_DIRECTORY_MAX;
}

/* Refuses a sticky directory such as /tmp: there, other users could not remove what dead processes leave. */
static bool is_open(const struct stat *status, const char *directory)
{
    const char *named = setting_environment(SETTING_DIR);
    mode_t mode = status->st_mode & 01777;
    return S_ISDIR(status->st_mode) && named && !strcmp(named, directory) && (mode == 0770 || mode == 0777);
}

bool directory_is_open(const char *directory)
{
    struct stat status;
    return !lstat(directory, &status) && is_open(&status, directory);
}

/* Explains why another user's directory can't be used. */
static void explain_owner(const struct stat *status, const char *directory, char *why, size_t why_size)
{
    if (user_has_own_number(status->st_uid))
        snprintf(why, why_size,
                 "The directory %s belongs to a user who has no number in this user namespace (the kernel shows %u, as "
                 "which this program runs), and is not open to others (mode 0770 or 0777); name another one with "
                 "SOFTVERBS_DIR.",
                 directory, (unsigned)status->st_uid);
    else
        snprintf(why, why_size,
                 "The directory %s belongs to user %u, not to user %u, as which this program runs, and is not open to "
                 "others (mode 0770 or 0777); name another one with SOFTVERBS_DIR.",
                 directory, (unsigned)status->st_uid, (unsigned)geteuid());
}

static int explain(const struct stat *status, const char *directory, char *why, size_t why_size)
{
    if (is_open(status, directory))
        return 0;
    if (!S_ISDIR(status->st_mode))
        return SAY_AND(ENOTDIR, why, why_size, "%s is not a directory (a symbolic link is not followed).", directory);
    if (!user_owns_file(AT_FDCWD, directory, status)) {
        explain_owner(status, directory, why, why_size);
        return EACCES;
    }
    if ((status->st_mode & 01777) != 0700)
        return SAY_AND(EACCES, why, why_size,
                       "The directory %s has mode %03o; it must be 0700, so that only its owner can enter it, or 0770 "
                       "or 0777 and named with SOFTVERBS_DIR, to be open to other users.",
                       directory, status->st_mode & 01777);
    return 0;
}

int directory_check(const char *directory, bool create, char *why, size_t why_size)
{
    struct stat status;
    if (strlen(directory) > NODE_DIRECTORY_MAX)
        return SAY_AND(ENAMETOOLONG, why, why_size, "The directory's name is longer than %d characters: %s",
                       NODE_DIRECTORY_MAX, directory);
    if (create && mkdir(directory, 0700) && errno != EEXIST) {
        int error = errno;
        return SAY_AND(error, why, why_size, "The directory %s can't be made: %s.", directory, strerror(error));
    }
    if (lstat(directory, &status)) {
        int error = errno;
        return SAY_AND(error, why, why_size, "The directory %s can't be read: %s.", directory, strerror(error));
    }
    return explain(&status, directory, why, why_size);
}

/* A descriptor that was opened with O_PATH can change the mode only by its name in /proc. */
static int set_mode(int descriptor, mode_t mode)
{
    char name[48];
    snprintf(name, sizeof name, "/proc/self/fd/%d", descriptor);
    return fchmod(descriptor, mode) && (errno != EBADF || chmod(name, mode)) ? errno : 0;
}

/* Another user may have put a file of ours under this name, which is then the file's second one. If we may not give the
 * file to the group, it has the group already where the directory hands on its own (mode 2770). Two groups that a user
 * namespace shows by one number are taken for one: who is of our group and not of the directory's can't enter it. */
int directory_share(const char *directory, int descriptor)
{
    struct stat status, file;
    if (lstat(directory, &status) || !is_open(&status, directory))
        return 0;
    if (fstat(descriptor, &file))
        return errno;
    if (!user_owns_file(descriptor, "", &file) || file.st_nlink != 1)
        return EEXIST;
    if (file.st_gid != status.st_gid && fchownat(descriptor, "", (uid_t)-1, status.st_gid, AT_EMPTY_PATH) &&
        !(status.st_mode & 07))
        return errno;
    return set_mode(descriptor, 0600 | (status.st_mode & 0066));
}

int directory_share_socket(const char *directory, const char *name)
{
    struct stat status;
    if (!directory_is_open(directory))
        return 0;
    int descriptor = open(name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (descriptor < 0 || fstat(descriptor, &status)) {
        int error = errno;
        if (descriptor >= 0)
            close(descriptor);
        return error;
    }
    int error = S_ISSOCK(status.st_mode) ? directory_share(directory, descriptor) : EEXIST;
    close(descriptor);
    return error;
}

int directory_owns_socket(const char *name)
{
    struct stat status;
    if (lstat(name, &status))
        return errno;
    return user_owns_file(AT_FDCWD, name, &status) ? 0 : EPERM;
}
