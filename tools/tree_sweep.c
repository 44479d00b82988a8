#include "tree_sweep.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/user.h"

enum { DAY = 24 * 3600, ENVIRONMENT_MOST = 256 << 10 };

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    return remove(path);
}

void tree_remove(const char *path)
{
    nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static bool names(const char *environment, const char *path)
{
    int fd = open(environment, O_RDONLY | O_CLOEXEC);
    char *text = fd < 0 ? NULL : malloc(ENVIRONMENT_MOST);
    size_t length = 0;
    for (ssize_t some;
         text && length < ENVIRONMENT_MOST && (some = read(fd, text + length, ENVIRONMENT_MOST - length)) > 0;)
        length += (size_t)some;
    bool found = text && memmem(text, length, path, strlen(path));
    free(text);
    if (fd >= 0)
        close(fd);
    return found;
}

/* Returns whether a process was started with the path in its environment, as by `softverbs run`, or may have been. */
static bool is_used(const char *path)
{
    char environment[64];
    struct dirent *entry;
    bool found = false;
    DIR *processes = opendir("/proc");
    while (processes && !found && (entry = readdir(processes)))
        if (strspn(entry->d_name, "0123456789") == strlen(entry->d_name) && strlen(entry->d_name) < 20) {
            snprintf(environment, sizeof environment, "/proc/%.20s/environ", entry->d_name);
            found = names(environment, path);
        }
    if (processes)
        closedir(processes);
    return found || !processes;
}

static bool is_tree(int parent, const char *name, const char *prefix, struct stat *status)
{
    return !strncmp(name, prefix, strlen(prefix)) && !fstatat(parent, name, status, AT_SYMLINK_NOFOLLOW) &&
           S_ISDIR(status->st_mode) && user_owns_file(parent, name, status);
}

static unsigned count_trees(DIR *stream, const char *prefix)
{
    unsigned count = 0;
    struct stat status;
    struct dirent *entry;
    while ((entry = readdir(stream)))
        count += is_tree(dirfd(stream), entry->d_name, prefix, &status);
    rewinddir(stream);
    return count;
}

void tree_sweep(const char *parent, const char *prefix)
{
    char path[512];
    struct stat status;
    struct dirent *entry;
    DIR *stream = opendir(parent);
    if (!stream)
        return;
    bool many = count_trees(stream, prefix) > TREE_SWEEP_KEPT;
    while (many && (entry = readdir(stream))) {
        snprintf(path, sizeof path, "%s/%s", parent, entry->d_name);
        if (is_tree(dirfd(stream), entry->d_name, prefix, &status) && time(NULL) - status.st_mtime > DAY &&
            !is_used(path))
            tree_remove(path);
    }
    closedir(stream);
}
