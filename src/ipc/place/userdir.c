#include "ipc/place/userdir.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/user.h"

enum { SUFFIX = 9 }; /* characters of a suffix: - and eight digits */

unsigned long long userdir_namespace(const char *kind)
{
    char path[64];
    struct stat space;
    snprintf(path, sizeof path, "/proc/self/ns/%s", kind);
    return stat(path, &space) ? 0 : (unsigned long long)space.st_ino;
}

static bool is_writable(const char *base)
{
    struct stat status;
    return base && *base == '/' && !stat(base, &status) && S_ISDIR(status.st_mode) && !access(base, W_OK | X_OK);
}

/* The variable may still name the other user's directory under sudo, and that user could move our files there. */
static const char *runtime_directory(void)
{
    struct stat status;
    const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
    return runtime && !stat(runtime, &status) && user_owns_file(AT_FDCWD, runtime, &status) ? runtime : NULL;
}

unsigned userdir_bases(const char *bases[USERDIR_BASES])
{
    const char *const all[USERDIR_BASES] = {"/dev/shm", runtime_directory(), "/tmp"};
    unsigned count = 0;
    for (int i = 0; i < USERDIR_BASES; i++)
        if (is_writable(all[i]))
            bases[count++] = all[i];
    return count;
}

static bool is_own(const char *path)
{
    struct stat status;
    return !lstat(path, &status) && S_ISDIR(status.st_mode) && user_owns_file(AT_FDCWD, path, &status);
}

static bool userdir_join(char *to, size_t size, const char *base, const char *name)
{
    int length = snprintf(to, size, "%s/%s", base, name);
    if (length > 0 && (size_t)length < size)
        return true;
    *to = 0;
    return false;
}

static bool has_suffix(const char *entry, const char *name)
{
    size_t length = strlen(name);
    return !strncmp(entry, name, length) && entry[length] == '-' &&
           strspn(entry + length + 1, "0123456789abcdef") == SUFFIX - 1 && !entry[length + SUFFIX];
}

/* Finds a directory with a suffix: of several, made by processes that began at the same time, the first by name. */
static bool find_with_suffix(const char *base, const char *name, char *to, size_t size)
{
    char path[512], best[512] = "";
    DIR *entries = opendir(base);
    for (struct dirent *entry; entries && (entry = readdir(entries));)
        if (has_suffix(entry->d_name, name) && userdir_join(path, sizeof path, base, entry->d_name) && is_own(path) &&
            (!*best || strcmp(path, best) < 0))
            strcpy(best, path);
    if (entries)
        closedir(entries);
    if (!*best || strlen(best) >= size)
        return false;
    strcpy(to, best);
    return true;
}

/* Adds an unpredictable suffix; "": it does not fit. */
static void add_suffix(char *to, size_t size)
{
    uint32_t number = (uint32_t)getpid();
    size_t length = strlen(to);
    if (getrandom(&number, sizeof number, GRND_NONBLOCK) < 0)
        number *= 2654435761u; /* early in a boot: at least another one for each process */
    if (length + SUFFIX < size)
        snprintf(to + length, size - length, "-%08" PRIx32, number);
    else
        *to = 0;
}

bool userdir_find(const char *base, const char *name, char *to, size_t size)
{
    struct stat status;
    if (!userdir_join(to, size, base, name))
        return false;
    if (is_own(to) || find_with_suffix(base, name, to, size))
        return true;
    if (lstat(to, &status))
        return false;
    if (is_own(to)) /* another process of ours has just made it */
        return true;
    add_suffix(to, size);
    return false;
}
