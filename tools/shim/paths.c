/* libsoftverbs-paths.so: gives a program the paths that a kernel with an RDMA device would provide.
 *
 * `softverbs run` preloads it. A path below /sys/class/infiniband, /sys/class/infiniband_verbs,
 * /sys/class/misc/rdma_cm, /dev/infiniband or /sys/devices/softverbs is replaced by the same path below
 * $SOFTVERBS_PATHS, and so is a path of PCI functions that the machine lacks and the tree has (SOFTVERBS_PCI); libc
 * gets every other path unchanged, after a look at its first two characters. A result of realpath(3) there becomes a
 * path below /sys or /dev again. A file of counters is made when it is opened (counter.h), also by a path that is
 * relative to a directory of the tree (relative.h). Between its constructor and its destructor (unopened/at_end.c) it
 * allocates nothing by malloc, takes no lock, prints nothing and leaves errno alone, so that functions of libc that are
 * async-signal-safe stay so. Without SOFTVERBS_PATHS it replaces nothing. */
#include "counter.h"
#include "find_tree.h"
#include "redirect.h"
#include "relative.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The musl before 1.2.4 has macros of these names, for the functions without 64. */
#undef open64
#undef openat64
#undef stat64
#undef lstat64
#undef fstatat64
#undef fopen64
#undef freopen64
#undef scandir64

/* A second symbol name instead of libc's own declarations: those promise that no pointer is NULL, and the compiler
 * would then remove the check for it. */
#define EXPORT(result, name, parameters)                                                                               \
    result redirected_##name parameters __asm__(#name) __attribute__((visibility("default")));                         \
    result redirected_##name parameters

enum function {
#define REDIRECT(result, name, parameters, arguments) FUNCTION_##name,
#include "redirected.def"
#undef REDIRECT
    FUNCTION_open,
    FUNCTION_open64,
    FUNCTION_openat,
    FUNCTION_openat64,
    FUNCTIONS
};

static const char *const function_names[FUNCTIONS] = {
#define REDIRECT(result, name, parameters, arguments) [FUNCTION_##name] = #name,
#include "redirected.def"
#undef REDIRECT
    [FUNCTION_open] = "open",
    [FUNCTION_open64] = "open64",
    [FUNCTION_openat] = "openat",
    [FUNCTION_openat64] = "openat64",
};

static _Atomic(void *) next[FUNCTIONS]; /* the same functions, of the next library */
static char root[ROOT_MAX];             /* empty: nothing is redirected */
static size_t root_length;

void *dlvsym(void *, const char *, const char *) __attribute__((weak)); /* musl has no versions of symbols */

/* The newest version of a function: before glibc 2.36 dlsym(RTLD_NEXT) gave the oldest, and the realpath of 2.0 refuses
 * to allocate. */
static void *newest_of_libc(const char *name)
{
    void *found = !dlvsym || strcmp(name, "realpath") ? NULL : dlvsym(RTLD_NEXT, name, "GLIBC_2.3");
    return found ? found : dlsym(RTLD_NEXT, name);
}

/* Runs before main, with one thread and no signal handler yet: dlsym is not async-signal-safe. */
static __attribute__((constructor)) void start(void)
{
    const char *value = secure_getenv("SOFTVERBS_PATHS");
    size_t length = value ? strlen(value) : 0;
    for (int i = 0; i < FUNCTIONS; i++)
        atomic_store_explicit(&next[i], newest_of_libc(function_names[i]), memory_order_relaxed);
    if (length && *value == '/' && length < sizeof root) {
        memcpy(root, value, length + 1);
        root_length = find_tree(root, sizeof root);
        counter_find_program();
        relative_start();
    }
}

static inline void *next_function(enum function function)
{
    if (__builtin_expect(!atomic_load_explicit(&next[function], memory_order_relaxed), 0))
        start(); /* another library's constructor was called before ours */
    return atomic_load_explicit(&next[function], memory_order_relaxed);
}

/* A device node is a symbolic link in our tree, to a device that everybody may open; programs shall see the device. */
static const char *follow_device(const char *path, char *place)
{
    char target[PLACE_MAX];
    int error = errno;
    long length = syscall(SYS_readlinkat, AT_FDCWD, path, target, sizeof target - 1);
    errno = error;
    if (length <= 0)
        return path;
    target[length] = 0;
    return memcpy(place, target, (size_t)length + 1);
}

/* Calls the kernel itself, as libc's functions are ours. errno stays as it is. */
static bool exists(const char *path)
{
    int error = errno;
    bool found = !syscall(SYS_faccessat, AT_FDCWD, path, F_OK) || errno != ENOENT;
    errno = error;
    return found;
}

/* The machine's own file precedes the tree's, except for lists, whose tree has both. A name that neither has gets the
 * machine's error. */
static bool is_ours(enum redirect_kind kind, const char *path, const char *place)
{
    return kind < REDIRECT_LIST || (exists(place) && !(kind == REDIRECT_AMONG && exists(path)));
}

static __attribute__((noinline)) const char *redirect(const char *path, char *place)
{
    enum redirect_kind kind;
    if (!root_length || !redirect_path(path, root, root_length, place, &kind) || !is_ours(kind, path, place))
        return path;
    relative_expect();
    return kind == REDIRECT_DEVICE ? follow_device(place, place) : place;
}

static inline const char *told(const char *path, char *place)
{
    return redirect_plausible(path) ? redirect(path, place) : path;
}

/* Redirects like told, for functions that open a file, and returns a descriptor for counter_close, or -1. */
static inline int opened(int at, const char **path, char *place)
{
    *path = told(*path, place);
    if (*path != place && root_length && relative_find_counter(at, *path, root, place))
        *path = place;
    return *path == place ? counter_make(place) : -1;
}

/* A file that was made is reached through a link of /proc, which O_NOFOLLOW would refuse. */
static inline int flags_for(int held, int flags)
{
    return held < 0 ? flags : flags & ~O_NOFOLLOW;
}

/* Replaces a path in our tree by the one where the kernel would have it. It becomes shorter. */
static char *as_the_kernel(char *path)
{
    if (!path || !root_length || strncmp(path, root, root_length) || path[root_length] != '/')
        return path;
    const char *rest = path + root_length;
    size_t front = strncmp(rest, "/dev/", 5) ? strlen("/sys") : 0;
    if (front > root_length)
        return path;
    memmove(path + front, rest, strlen(rest) + 1);
    memcpy(path, "/sys", front);
    return path;
}

#define REDIRECT(result, name, parameters, arguments)                                                                  \
    EXPORT(result, name, parameters)                                                                                   \
    {                                                                                                                  \
        char place[PLACE_MAX];                                                                                         \
        result(*function) parameters = next_function(FUNCTION_##name);                                                 \
        path = told(path, place);                                                                                      \
        return function arguments;                                                                                     \
    }
#define OPENS_AT(at, result, name, parameters, arguments)                                                              \
    EXPORT(result, name, parameters)                                                                                   \
    {                                                                                                                  \
        char place[PLACE_MAX];                                                                                         \
        result(*function) parameters = next_function(FUNCTION_##name);                                                 \
        int held = opened(at, &path, place);                                                                           \
        result answer = function arguments;                                                                            \
        counter_close(held);                                                                                           \
        return answer;                                                                                                 \
    }
#define OPENS(result, name, parameters, arguments) OPENS_AT(AT_FDCWD, result, name, parameters, arguments)
#define RESOLVE(result, name, parameters, arguments)                                                                   \
    EXPORT(result, name, parameters)                                                                                   \
    {                                                                                                                  \
        char place[PLACE_MAX];                                                                                         \
        result(*function) parameters = next_function(FUNCTION_##name);                                                 \
        path = told(path, place);                                                                                      \
        return as_the_kernel(function arguments);                                                                      \
    }
#include "redirected.def"
#undef REDIRECT

static bool has_mode(int flags)
{
    return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
}

#define OPEN(name)                                                                                                     \
    EXPORT(int, name, (const char *path, int flags, ...))                                                              \
    {                                                                                                                  \
        char place[PLACE_MAX];                                                                                         \
        int (*function)(const char *, int, ...) = next_function(FUNCTION_##name);                                      \
        va_list rest;                                                                                                  \
        va_start(rest, flags);                                                                                         \
        mode_t mode = has_mode(flags) ? va_arg(rest, mode_t) : 0;                                                      \
        va_end(rest);                                                                                                  \
        int held = opened(AT_FDCWD, &path, place), fd = function(path, flags_for(held, flags), mode);                  \
        counter_close(held);                                                                                           \
        return fd;                                                                                                     \
    }
OPEN(open)
OPEN(open64)

#define OPEN_AT(name)                                                                                                  \
    EXPORT(int, name, (int at, const char *path, int flags, ...))                                                      \
    {                                                                                                                  \
        char place[PLACE_MAX];                                                                                         \
        int (*function)(int, const char *, int, ...) = next_function(FUNCTION_##name);                                 \
        va_list rest;                                                                                                  \
        va_start(rest, flags);                                                                                         \
        mode_t mode = has_mode(flags) ? va_arg(rest, mode_t) : 0;                                                      \
        va_end(rest);                                                                                                  \
        int held = opened(at, &path, place), fd = function(at, path, flags_for(held, flags), mode);                    \
        counter_close(held);                                                                                           \
        return fd;                                                                                                     \
    }
OPEN_AT(openat)
OPEN_AT(openat64)
