#include "place.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether the owner is root, the user of this process, or the maker of the command, which could contain anything
 * anyway. */
static bool is_trusted(const struct stat *status, uid_t maker)
{
    return status->st_uid == 0 || status->st_uid == geteuid() || status->st_uid == maker;
}

/* Returns whether no other user can put another entry in this one's place. In a sticky directory only its owner can. */
static bool is_kept_by(const struct stat *directory, const struct stat *entry, uid_t maker)
{
    return !(directory->st_mode & S_IWOTH) || (directory->st_mode & S_ISVTX && is_trusted(entry, maker));
}

/* A file, or a directory, as a path without links. */
static bool is_safe(const char *path, uid_t maker)
{
    char above[PLACE_PATH_MAX + 64];
    struct stat entry, parent;
    if (stat(path, &entry) || !is_trusted(&entry, maker) || entry.st_mode & S_IWOTH)
        return false;
    snprintf(above, sizeof above, "%s", path);
    for (char *slash; (slash = strrchr(above, '/')) && *above; entry = parent) {
        *slash = 0;
        if (stat(*above ? above : "/", &parent) || !is_kept_by(&parent, &entry, maker))
            return false;
    }
    return true;
}

/* All of them, or a program would silently get the distribution's. As a path without links and "..", since the program
 * may change its directory or see other links. */
static int find_in(const char *directory, const char *below, char *to)
{
    static const char *const names[] = {"libibverbs.so.1", "libsoftverbs-paths.so"};
    char path[PLACE_PATH_MAX + 64], resolved[PLACE_PATH_MAX];
    struct stat self;
    if (stat("/proc/self/exe", &self))
        return errno;
    snprintf(path, sizeof path, "%s/%s", directory, below);
    if (!realpath(path, resolved))
        return errno;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", resolved, names[i]);
        if (access(path, R_OK))
            return errno;
        if (!is_safe(path, self.st_uid))
            return EPERM;
    }
    if (!is_safe(resolved, self.st_uid))
        return EPERM;
    strcpy(to, resolved);
    return 0;
}

/* The path of this command, read once: under qemu-user a command that was started by a relative path has none any more
 * when it has changed its directory. 0, or errno and "". */
static int find_self(char to[PLACE_PATH_MAX])
{
    static char self[PLACE_PATH_MAX];
    ssize_t length = *self ? 0 : readlink("/proc/self/exe", self, sizeof self - 1);
    strcpy(to, self);
    return length < 0 ? errno : 0;
}

int place_libraries(char *to, char *why, size_t why_size)
{
    char self[PLACE_PATH_MAX];
    int error = find_self(self);
    if (error) {
        snprintf(why, why_size,
                 "/proc can't be read here (%s), so this command does not find its own libraries: mount it (in a "
                 "chroot: mount -t proc proc /proc).",
                 strerror(error));
        return error;
    }
    *strrchr(self, '/') = 0;
    int beside = find_in(self, "lib", to), installed = beside ? find_in(self, "../" LIBRARY_DIRECTORY, to) : 0;
    if (!installed)
        return 0;
    if (beside == EPERM || installed == EPERM) {
        snprintf(why, why_size,
                 "The libraries in \"%s\" beside this command are not used: they belong to another user, or everybody "
                 "may change them or a directory above them.",
                 beside == EPERM ? "lib" : "../" LIBRARY_DIRECTORY);
        return EPERM;
    }
    snprintf(why, why_size,
             "The libraries that belong to this command are not where they should be: in \"lib\" beside it or in "
             "\"../" LIBRARY_DIRECTORY "\" from it. Build or install softverbs again.");
    return ENOENT;
}

bool place_profiles(char *to)
{
    static const char *const below[] = {"profiles", "../" PROFILE_DIRECTORY};
    char self[PLACE_PATH_MAX], path[PLACE_PATH_MAX + 64];
    if (find_self(self))
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
    if (!find_self(self))
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
