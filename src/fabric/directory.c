#include "fabric/directory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabric/node.h"

static bool put(char *to, const char *base)
{
    struct stat space = {0};
    stat("/proc/self/ns/net", &space); /* without /proc: 0 for all */
    int length = snprintf(to, NODE_DIRECTORY_MAX + 1, "%s/softverbs-%u-%llu", base, (unsigned)geteuid(),
                          (unsigned long long)space.st_ino);
    return length > 0 && length <= NODE_DIRECTORY_MAX;
}

static bool is_usable(const char *base)
{
    struct stat status;
    return base && *base && !stat(base, &status) && S_ISDIR(status.st_mode) && !access(base, W_OK | X_OK);
}

bool node_directory(char *to)
{
    const char *named = secure_getenv("SOFTVERBS_DIR"), *runtime = secure_getenv("XDG_RUNTIME_DIR");
    if (named && *named)
        return snprintf(to, NODE_DIRECTORY_MAX + 1, "%s", named) <= NODE_DIRECTORY_MAX;
    if (is_usable("/dev/shm"))
        return put(to, "/dev/shm");
    return put(to, is_usable(runtime) ? runtime : "/tmp");
}

static int explain(const struct stat *status, const char *directory, char *why, size_t why_size)
{
    if (!S_ISDIR(status->st_mode)) {
        snprintf(why, why_size, "%s is not a directory (a symbolic link is not followed).", directory);
        return ENOTDIR;
    }
    if (status->st_uid != geteuid()) {
        snprintf(why, why_size, "The directory %s belongs to user %u, not to user %u who runs this program.", directory,
                 (unsigned)status->st_uid, (unsigned)geteuid());
        return EACCES;
    }
    if ((status->st_mode & 0777) != 0700) {
        snprintf(why, why_size, "The directory %s has mode %03o; it must be 0700, so that only its owner can enter it.",
                 directory, status->st_mode & 0777);
        return EACCES;
    }
    return 0;
}

int directory_check(const char *directory, bool create, char *why, size_t why_size)
{
    struct stat status;
    if (strlen(directory) > NODE_DIRECTORY_MAX) {
        snprintf(why, why_size, "The directory's name is longer than %d characters: %s", NODE_DIRECTORY_MAX, directory);
        return ENAMETOOLONG;
    }
    if (create && mkdir(directory, 0700) && errno != EEXIST) {
        int error = errno;
        snprintf(why, why_size, "The directory %s can't be made: %s.", directory, strerror(error));
        return error;
    }
    if (lstat(directory, &status)) {
        int error = errno;
        snprintf(why, why_size, "The directory %s can't be read: %s.", directory, strerror(error));
        return error;
    }
    return explain(&status, directory, why, why_size);
}
