#include "place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text/text.h"
#include "base/user.h"

/* The directory and the owner of this command, into which the owner could put anything anyway. */
struct self {
    const char *directory;
    uid_t maker;
};

static bool is_above(const char *path, const char *directory)
{
    size_t length = strlen(path);
    return !strncmp(path, directory, length) && (directory[length] == '/' || !directory[length]);
}

/* Returns whether the file's owner is root, the user of this process, or the owner of the command. */
static bool is_trusted(const char *path, const struct stat *status, const struct self *self)
{
    return status->st_uid == 0 || user_owns_file(AT_FDCWD, path, status) || user_is_same(status->st_uid, self->maker);
}

/* In a user namespace, users without a number there may own the system's files and the command. */
static bool may_be_makers(const struct stat *status, const struct self *self)
{
    return status->st_uid == self->maker;
}

/* Returns whether no other user can put another entry in this one's place. In a sticky directory only the entry's owner
 * can, and the owner of a directory above the command could replace the command as well. */
static bool is_kept_by(const struct stat *directory, const char *path, const struct stat *entry,
                       const struct self *self)
{
    return !(directory->st_mode & S_IWOTH) ||
           (directory->st_mode & S_ISVTX &&
            (is_trusted(path, entry, self) || (may_be_makers(entry, self) && is_above(path, self->directory))));
}

/* Returns whether no other user can change or replace the file or directory, whose path has no links. The number of its
 * owner decides only because the loop makes sure that no other user could put it there. */
static bool is_safe(const char *path, const struct self *self)
{
    char above[PLACE_PATH_MAX + 64];
    struct stat entry, parent;
    if (stat(path, &entry) || entry.st_mode & S_IWOTH ||
        !(may_be_makers(&entry, self) || is_trusted(path, &entry, self)))
        return false;
    snprintf(above, sizeof above, "%s", path);
    for (char *slash; (slash = strrchr(above, '/')) && *above; entry = parent) {
        *slash = 0;
        bool known = !stat(*above ? above : "/", &parent);
        *slash = '/';
        if (!known || !is_kept_by(&parent, above, &entry, self))
            return false;
        *slash = 0;
    }
    return true;
}

/* Finds the directory that has all libraries: instead of a missing one a program would silently get the distribution's.
 * Writes a path without links and "..", since the program may change its directory or see other links. */
static int find_in(const char *directory, const char *below, char *to)
{
    static const char *const names[] = {"libibverbs.so.1", "libsoftverbs-paths.so"};
    char path[PLACE_PATH_MAX + 64], resolved[PLACE_PATH_MAX];
    struct stat status;
    if (stat("/proc/self/exe", &status))
        return errno;
    const struct self self = {directory, status.st_uid};
    snprintf(path, sizeof path, "%s/%s", directory, below);
    if (!realpath(path, resolved))
        return errno;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", resolved, names[i]);
        if (access(path, R_OK))
            return errno;
        if (!is_safe(path, &self))
            return EPERM;
    }
    if (!is_safe(resolved, &self))
        return EPERM;
    strcpy(to, resolved);
    return 0;
}

/* The first path is kept: under qemu-user a command loses a relative path when it changes its directory. */
int place_self(char *to)
{
    static char self[PLACE_PATH_MAX];
    ssize_t length = *self ? 0 : readlink("/proc/self/exe", self, sizeof self - 1);
    strcpy(to, self);
    return length < 0 ? errno : 0;
}

int place_libraries(char *to, char *why, size_t why_size)
{
    char self[PLACE_PATH_MAX];
    int error = place_self(self);
    if (error)
        return SAY_AND(error, why, why_size,
                       "/proc can't be read here (%s), so this command does not find its own libraries: mount it (in a "
                       "chroot: mount -t proc proc /proc).",
                       strerror(error));
    *strrchr(self, '/') = 0;
    int beside = find_in(self, "lib", to), installed = beside ? find_in(self, "../" LIBRARY_DIRECTORY, to) : 0;
    if (!installed)
        return 0;
    if (beside == EPERM || installed == EPERM)
        return SAY_AND(
            EPERM, why, why_size,
            "The libraries in \"%s\" beside this command are not used: they belong to another user, or everybody "
            "may change them or a directory above them.",
            beside == EPERM ? "lib" : "../" LIBRARY_DIRECTORY);
    return SAY_AND(ENOENT, why, why_size,
                   "The libraries that belong to this command are not where they should be: in \"lib\" beside it or in "
                   "\"../" LIBRARY_DIRECTORY "\" from it. Build or install softverbs again.");
}

bool place_profiles(char *to)
{
    static const char *const below[] = {"profiles", "../" PROFILE_DIRECTORY};
    char self[PLACE_PATH_MAX], path[PLACE_PATH_MAX + 64];
    if (place_self(self))
        return false;
    *strrchr(self, '/') = 0;
    for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
        snprintf(path, sizeof path, "%s/%s", self, below[i]);
        if (realpath(path, to))
            return true;
    }
    return false;
}

int place_execute(char *const *arguments)
{
    char self[PLACE_PATH_MAX];
    if (!place_self(self))
        execv(self, arguments);
    execv("/proc/self/exe", arguments);
    return errno;
}

void place_installed(char *to, size_t size)
{
    char line[512];
    *to = 0;
    FILE *cache = popen("PATH=/usr/sbin:/sbin:/usr/bin:/bin ldconfig -p 2>/dev/null", "re");
    while (cache && fgets(line, sizeof line, cache)) {
        const char *arrow = strstr(line, " => ");
        if (*to || !arrow || !strstr(line, "\tlibibverbs.so.1 "))
            continue;
        snprintf(to, size, "%s", arrow + 4);
        to[strcspn(to, "\n")] = 0;
    }
    if (cache)
        pclose(cache);
}
