#include "diag/named_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/user.h"

enum { LINKS_MOST = 40, AGAIN = -2 };

/* A path, name by name. */
struct walk {
    int at;              /* the directory that has been reached */
    struct stat status;  /* of that directory */
    char rest[PATH_MAX]; /* the rest of the path, from `done` on */
    size_t done;
    char name[NAME_MAX + 1];
    bool last; /* `name` is the last of the path */
    int links;
};

static int fail(int error)
{
    errno = error;
    return -1;
}

/* Continues from this directory in place of the one before it. */
static int reach(struct walk *walk, int directory)
{
    if (directory < 0)
        return -1;
    close(walk->at);
    walk->at = directory;
    return fstat(directory, &walk->status) ? -1 : AGAIN;
}

static int start(struct walk *walk)
{
    return reach(walk, walk->rest[walk->done] == '/' ? open("/", O_PATH | O_CLOEXEC)
                                                     : openat(walk->at, ".", O_PATH | O_CLOEXEC));
}

/* Moves the next name out of the rest. */
static int next_name(struct walk *walk)
{
    const char *from = walk->rest + walk->done;
    from += strspn(from, "/");
    size_t length = strcspn(from, "/");
    if (length > NAME_MAX)
        return fail(ENAMETOOLONG);
    if (!length)
        return fail(EISDIR);
    memcpy(walk->name, from, length);
    walk->name[length] = 0;
    walk->last = !from[length];
    walk->done = (size_t)(from + length - walk->rest);
    return AGAIN;
}

static bool others_write(const struct stat *directory)
{
    return directory->st_mode & S_IWOTH || (directory->st_mode & S_IWGRP && directory->st_mode & S_ISVTX);
}

static bool is_trusted(const struct walk *walk, int entry, const struct stat *found)
{
    if (!others_write(&walk->status))
        return true;
    return (user_owns_file(entry, "", found) || user_is_same(found->st_uid, walk->status.st_uid)) &&
           !(S_ISREG(found->st_mode) && found->st_nlink > 1);
}

/* Links of /proc may lead to files without a name, so they are opened and not read. */
static bool is_of_proc(int directory)
{
    struct statfs system;
    return !fstatfs(directory, &system) && system.f_type == PROC_SUPER_MAGIC;
}

static int follow(struct walk *walk, int link, int flags)
{
    char path[PATH_MAX];
    if (walk->last && is_of_proc(walk->at))
        return openat(walk->at, walk->name, flags & ~O_CREAT);
    ssize_t length = readlinkat(link, "", path, sizeof path - 1);
    if (length < 0 || ++walk->links > LINKS_MOST)
        return length < 0 ? -1 : fail(ELOOP);
    if ((size_t)length + strlen(walk->rest + walk->done) >= sizeof path)
        return fail(ENAMETOOLONG);
    path[length] = 0;
    strcat(path, walk->rest + walk->done);
    strcpy(walk->rest, path);
    walk->done = 0;
    return start(walk);
}

/* Another user may replace the file before it is opened, so the opened one must be the one that was judged. */
static int open_found(struct walk *walk, const struct stat *found, int flags)
{
    struct stat status;
    int file = openat(walk->at, walk->name, (flags & ~O_CREAT) | O_NOFOLLOW, 0);
    if (file < 0)
        return -1;
    if (!fstat(file, &status) && status.st_dev == found->st_dev && status.st_ino == found->st_ino)
        return file;
    close(file);
    return fail(EACCES);
}

static int named_file_enter(struct walk *walk, int entry, int flags, bool *kept)
{
    struct stat found;
    if (fstat(entry, &found))
        return -1;
    if (!S_ISDIR(found.st_mode) && !is_trusted(walk, entry, &found))
        return fail(EACCES);
    if (S_ISLNK(found.st_mode))
        return follow(walk, entry, flags);
    if (walk->last)
        return open_found(walk, &found, flags);
    *kept = true;
    return reach(walk, entry);
}

static int step(struct walk *walk, int flags)
{
    bool kept = false;
    if (next_name(walk) != AGAIN)
        return -1;
    int entry = openat(walk->at, walk->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (entry < 0 && errno == ENOENT && walk->last && flags & O_CREAT)
        return openat(walk->at, walk->name, flags | O_EXCL, 0600);
    if (entry < 0)
        return -1;
    int result = named_file_enter(walk, entry, flags, &kept), error = errno;
    if (!kept)
        close(entry);
    errno = error;
    return result;
}

static int walk_to(const char *path, int flags)
{
    struct walk walk = {.at = AT_FDCWD};
    if (!*path || strlen(path) >= sizeof walk.rest)
        return fail(*path ? ENAMETOOLONG : ENOENT);
    strcpy(walk.rest, path);
    int result = start(&walk);
    while (result == AGAIN)
        result = step(&walk, flags);
    int error = errno;
    if (walk.at >= 0)
        close(walk.at);
    errno = error;
    return result;
}

/* Opens again if another process has just made the file: several processes of a program begin their log at once. */
int named_file_open(const char *path, int flags)
{
    flags |= O_CLOEXEC | O_NOCTTY;
    int result = walk_to(path, flags);
    return result < 0 && errno == EEXIST ? walk_to(path, flags) : result;
}
