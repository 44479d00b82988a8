#include "relative.h"

#include "counter.h"
#include "redirect.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef O_PATH
#define O_PATH 010000000
#endif

static atomic_bool expected;

void relative_expect(void)
{
    atomic_store_explicit(&expected, true, memory_order_relaxed);
}

/* A shell may have started the program in a directory of the tree. In another directory with such a name, each relative
 * path costs some system calls. */
void relative_start(void)
{
    char here[PLACE_MAX];
    int error = errno;
    long length = syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/cwd", here, sizeof here - 1);
    errno = error;
    if (length <= 0)
        return;
    here[length] = 0;
    if (strstr(here, "/infiniband"))
        relative_expect();
}

/* The path without links, in PLACE_MAX bytes; 0: no such path, or a longer one. */
static size_t find_path(int at, const char *path, char *place)
{
    char link[DESCRIPTOR_PATH_MAX];
    int fd = (int)syscall(SYS_openat, at, path, O_PATH | O_CLOEXEC, 0);
    if (fd < 0)
        return 0;
    counter_descriptor_path(link, fd);
    long length = syscall(SYS_readlinkat, AT_FDCWD, link, place, PLACE_MAX - 1);
    syscall(SYS_close, fd);
    place[length > 0 ? length : 0] = 0;
    return length > 0 ? (size_t)length : 0;
}

static bool is_below(const char *place, const char *root)
{
    char top[PLACE_MAX];
    size_t length = find_path(AT_FDCWD, root, top);
    return length && !strncmp(place, top, length) && place[length] == '/';
}

bool relative_find_counter(int at, const char *path, const char *root, char *place)
{
    int error = errno;
    bool found = atomic_load_explicit(&expected, memory_order_relaxed) && path && *path && *path != '/' &&
                 find_path(at, path, place) && counter_is_named(place) && is_below(place, root);
    errno = error;
    return found;
}
