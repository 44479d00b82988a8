#include "find_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/user.h"

/* Accepts a tree as tools/tree.c does: another user's tree could make our programs believe anything. */
static bool is_tree(int parent, const char *name, struct timespec *used)
{
    struct stat status;
    if (fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW))
        return false;
    *used = status.st_mtim;
    return S_ISDIR(status.st_mode) && user_owns_file(parent, name, &status) && !(status.st_mode & 022);
}

static bool is_later(struct timespec one, struct timespec other)
{
    return one.tv_sec != other.tv_sec ? one.tv_sec > other.tv_sec : one.tv_nsec > other.tv_nsec;
}

/* Writes the name of the newest tree whose first `prefix` bytes are the same; each use of a tree sets its time. */
static void choose_newest(DIR *parent, const char *name, size_t prefix, char newest[256])
{
    struct timespec used, last = {.tv_sec = 0};
    for (struct dirent *entry; (entry = readdir(parent));)
        if (!strncmp(entry->d_name, name, prefix) && is_tree(dirfd(parent), entry->d_name, &used) &&
            is_later(used, last)) {
            last = used;
            memcpy(newest, entry->d_name, strlen(entry->d_name) + 1);
        }
}

/* `name` is the last part of root, after a '/' that is 0 meanwhile. */
static void replace_name(char *root, char *name, size_t room)
{
    char newest[256] = "";
    const char *hash = strrchr(name, '-');
    DIR *parent = hash ? opendir(root) : NULL;
    if (!parent)
        return;
    choose_newest(parent, name, (size_t)(hash - name) + 1, newest);
    closedir(parent);
    if (*newest && (size_t)(name - root) + strlen(newest) < room)
        memcpy(name, newest, strlen(newest) + 1);
}

size_t find_tree(char *root, size_t room)
{
    int error = errno;
    char *slash = strrchr(root, '/');
    if (slash > root && access(root, F_OK)) {
        *slash = 0;
        replace_name(root, slash + 1, room);
        *slash = '/';
    }
    errno = error;
    return strlen(root);
}
