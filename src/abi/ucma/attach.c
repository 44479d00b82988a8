#include "abi/ucma/attach.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "abi/ucma/chardev.h"
#include "abi/ucma/event_channel.h"
#include "abi/ucma/ucma.h"
#include "base/static_lock.h"
#include "base/uncancelled.h"
#include "calls/imports.h"
#include "verbs/object/process_objects.h"

#define DEVICE "/dev/infiniband/rdma_cm"

/* --- what librdmacm calls instead */

enum { OPEN, OPEN64, FSTAT, FSTAT64, FXSTAT, FXSTAT64, WRITE, CLOSE, IMPORTS };

static _Atomic(imports_function *) originals[IMPORTS];

#define ORIGINAL(which, type) ((type)atomic_load(&originals[which]))

/* A thread that is cancelled while it opens or closes a channel would keep locks and references (base/uncancelled.h). */
static int open_either(unsigned which, const char *path, int flags, va_list arguments)
{
    mode_t mode = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0;
    if (strcmp(path, DEVICE))
        return ORIGINAL(which, int (*)(const char *, int, ...))(path, flags, mode);
    int before = uncancelled_begin(), fd = event_channel_open(flags);
    uncancelled_end(before);
    return fd;
}

static int attached_open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    int fd = open_either(OPEN, path, flags, arguments);
    va_end(arguments);
    return fd;
}

static int attached_open64(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    int fd = open_either(OPEN64, path, flags, arguments);
    va_end(arguments);
    return fd;
}

/* librdmacm wants a character device, with the number of the kernel's device rdma_cm if the kernel has one. */
static int as_device(int result, int fd, struct stat *status)
{
    struct event_channel *channel = result ? NULL : event_channel_find(fd);
    if (!channel)
        return result;
    status->st_mode = S_IFCHR | 0666;
    status->st_rdev = (dev_t)chardev_number();
    event_channel_put(channel);
    return 0;
}

_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "one struct for both");

static int attached_fstat(int fd, struct stat *status)
{
    return as_device(ORIGINAL(FSTAT, int (*)(int, struct stat *))(fd, status), fd, status);
}

static int attached_fstat64(int fd, struct stat *status)
{
    return as_device(ORIGINAL(FSTAT64, int (*)(int, struct stat *))(fd, status), fd, status);
}

static int attached_fxstat(int version, int fd, struct stat *status)
{
    return as_device(ORIGINAL(FXSTAT, int (*)(int, int, struct stat *))(version, fd, status), fd, status);
}

static int attached_fxstat64(int version, int fd, struct stat *status)
{
    return as_device(ORIGINAL(FXSTAT64, int (*)(int, int, struct stat *))(version, fd, status), fd, status);
}

static void put_back(void *channel)
{
    event_channel_put(channel);
}

/* The thread may be cancelled while it waits for an event. */
static ssize_t attached_write(int fd, const void *bytes, size_t length)
{
    struct event_channel *channel = event_channel_find(fd);
    int error;
    if (!channel)
        return ORIGINAL(WRITE, ssize_t(*)(int, const void *, size_t))(fd, bytes, length);
    pthread_cleanup_push(put_back, channel);
    error = ucma_write(channel, fd, bytes, length);
    pthread_cleanup_pop(true);
    if (!error)
        return (ssize_t)length;
    errno = error;
    return -1;
}

static int attached_close(int fd)
{
    struct event_channel *channel = event_channel_find(fd);
    if (channel) {
        int before = uncancelled_begin();
        event_channel_close(channel, fd);
        event_channel_put(channel);
        uncancelled_end(before);
    }
    return ORIGINAL(CLOSE, int (*)(int))(fd);
}

static const struct imports_entry imports[IMPORTS] = {
    [OPEN] = {"open", (imports_function *)attached_open},
    [OPEN64] = {"open64", (imports_function *)attached_open64},
    [FSTAT] = {"fstat", (imports_function *)attached_fstat},
    [FSTAT64] = {"fstat64", (imports_function *)attached_fstat64},
    [FXSTAT] = {"__fxstat", (imports_function *)attached_fxstat},
    [FXSTAT64] = {"__fxstat64", (imports_function *)attached_fxstat64},
    [WRITE] = {"write", (imports_function *)attached_write},
    [CLOSE] = {"close", (imports_function *)attached_close},
};

/* The function that each name means to a program: the original of an entry that is not bound yet. */
static _Atomic(imports_function *) meant[IMPORTS];

static void look_up(void)
{
    for (unsigned which = 0; which < IMPORTS; which++)
        atomic_store(&meant[which], (imports_function *)dlsym(RTLD_DEFAULT, imports[which].name));
    dlerror(); /* forgets errors of names that this C library lacks */
}

/* The original function of an entry. An entry that is not bound yet leads into the object itself, which would overwrite
 * the entry. */
static imports_function *original_of(const struct imports_object *object, unsigned which, imports_function *entry)
{
    return imports_is_inside(object, entry) ? atomic_load(&meant[which]) : entry;
}

static void replace(struct imports_object *object, unsigned which, imports_function **entry)
{
    imports_function *original = original_of(object, which, *entry);
    if (*entry == imports[which].replacement || !original)
        return;
    if (!atomic_load(&originals[which]))
        atomic_store(&originals[which], original);
    imports_store(object, entry, imports[which].replacement);
}

/* --- all objects. dl_iterate_phdr calls these functions under a lock of the dynamic loader. A thread that loads a
 * library needs that lock, so these functions may not wait for such a thread: no dlsym. */

/* Objects with entries that are not replaced yet. */
struct found {
    uintptr_t at[8];
    unsigned count;
};

static bool is_librdmacm(const struct dl_phdr_info *info)
{
    const char *base = strrchr(info->dlpi_name, '/');
    return !strncmp(base ? base + 1 : info->dlpi_name, "librdmacm.so", 12);
}

static void note_whether_new(struct imports_object *object, unsigned which, imports_function **entry)
{
    object->is_noted = object->is_noted || *entry != imports[which].replacement;
}

static int find_new(struct dl_phdr_info *info, size_t size, void *context)
{
    struct found *found = context;
    struct imports_object object;
    if (!is_librdmacm(info) || found->count == sizeof found->at / sizeof *found->at)
        return 0;
    imports_read(&object, info);
    imports_visit(&object, imports, IMPORTS, note_whether_new);
    if (object.is_noted)
        found->at[found->count++] = info->dlpi_addr;
    return 0;
}

static int attach_to_found(struct dl_phdr_info *info, size_t size, void *context)
{
    const struct found *found = context;
    struct imports_object object;
    for (unsigned i = 0; i < found->count; i++)
        if (found->at[i] == info->dlpi_addr && is_librdmacm(info)) {
            imports_read(&object, info);
            imports_visit(&object, imports, IMPORTS, replace);
        }
    return 0;
}

MUTEX_STATIC(attaching, LOCK_ATTACHING);

/* The lock `attaching` keeps forks away while dl_iterate_phdr holds a lock of the dynamic loader, which a child would
 * find taken for ever. */
static void each_object(int (*look)(struct dl_phdr_info *, size_t, void *), struct found *found)
{
    mutex_take(&attaching);
    dl_iterate_phdr(look, found);
    mutex_release(&attaching);
}

/* The first search may find an object that another thread is still loading, so it changes no entry. look_up waits for
 * the loader's lock, and thereby until that thread has relocated the object; this thread holds no lock meanwhile. */
void attach(void)
{
    struct found found = {.count = 0};
    int error = errno;
    process_watch_forks();
    each_object(find_new, &found);
    if (found.count) {
        look_up();
        each_object(attach_to_found, &found);
    }
    errno = error;
}
