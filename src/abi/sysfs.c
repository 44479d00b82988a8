#include "abi/sysfs.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/export.h"
#include "base/uncancelled.h"

static const char *sysfs_path = "/sys";

static void read_environment(void)
{
    const char *wanted = secure_getenv("SYSFS_PATH");
    char *copy = wanted ? strdup(wanted) : NULL;
    if (!copy)
        return;
    size_t length = strlen(copy);
    while (length && copy[length - 1] == '/')
        copy[--length] = '\0';
    sysfs_path = copy;
}

EXPORT const char *ibv_get_sysfs_path(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_environment);
    return sysfs_path;
}

static ssize_t read_named(const char *directory, const char *file, char *buffer, size_t size)
{
    char *path;
    if (asprintf(&path, "%s/%s", directory, file) < 0)
        return -1;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    free(path);
    if (fd < 0)
        return -1;
    const ssize_t length = read(fd, buffer, size);
    close(fd);
    return length;
}

EXPORT int ibv_read_sysfs_file(const char *directory, const char *file, char *buffer, size_t size)
{
    int before = uncancelled_begin(); /* a thread that is cancelled here would leak the descriptor */
    ssize_t length = read_named(directory, file, buffer, size);
    uncancelled_end(before);
    if (length <= 0)
        return (int)length;
    if (buffer[length - 1] == '\n')
        length--;
    else if ((size_t)length == size)
        return -1;
    buffer[length] = '\0';
    return (int)length;
}
