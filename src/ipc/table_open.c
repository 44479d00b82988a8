/* Finding, making and replacing the table's file. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/container.h"
#include "base/descriptor.h"
#include "base/file_limit.h"
#include "base/mapping.h"
#include "base/random.h"
#include "base/static_lock.h"
#include "ipc/node.h"
#include "ipc/place/directory.h"
#include "ipc/table.h"
#include "ipc/table_lock.h"

enum { TRIES = 32, REPLACING_TRIES = 100, PATH_SIZE = TABLE_NAME_MAX + 32 };

static struct table *opened; /* see table.h: one descriptor of a file in a process */
LOCK_STATIC(opening, LOCK_OPENING);

unsigned node_layout(void)
{
    return TABLE_LAYOUT;
}

static void path_of(const char *directory, char *to)
{
    snprintf(to, PATH_SIZE, "%s/table", directory);
}

static int fail(int error, const char *directory, const char *what, char *why, size_t why_size)
{
    snprintf(why, why_size, "The table of processes in %s can't be %s: %s.", directory, what, strerror(error));
    return error;
}

static int table_open_fill(int descriptor)
{
    if (file_limit_forbids(sizeof(struct table_file)))
        return EFBIG;
    int error = posix_fallocate(descriptor, 0, sizeof(struct table_file));
    if (error)
        return error;
    struct table_file *file = mapping_make(sizeof *file, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (file == MAP_FAILED)
        return errno;
    file->head.layout = TABLE_LAYOUT;
    file->head.size = sizeof *file;
    file->head.magic = TABLE_MAGIC;
    uint32_t first = random_draw("block", 0) % TABLE_BLOCKS;
    atomic_store(&file->next_block, first);
    atomic_store(&file->next_low_block, first);
    munmap(file, sizeof *file);
    return 0;
}

/* Makes a whole table under another name and then gives it the table's name: with `replace` in place of an existing
 * one, else EEXIST when another process was faster. A sweep may remove the other name before we are done (ENOENT). */
static int table_open_make(const char *directory, bool replace)
{
    char path[PATH_SIZE], fresh[PATH_SIZE];
    path_of(directory, path);
    snprintf(fresh, sizeof fresh, "%s/new.XXXXXX", directory); /* several containers may have the same process id */
    int descriptor = mkostemp(fresh, O_CLOEXEC);
    if (descriptor < 0)
        return errno;
    int error = table_open_fill(descriptor);
    if (!error)
        error = directory_share(directory, descriptor);
    if (!error && (replace ? rename(fresh, path) : link(fresh, path)))
        error = errno;
    unlink(fresh);
    close(descriptor);
    return error;
}

static bool is_ours(int descriptor)
{
    struct stat status;
    struct table_head head;
    return !fstat(descriptor, &status) && status.st_size == sizeof(struct table_file) &&
           table_head_read(descriptor, &head) && head.layout == TABLE_LAYOUT && head.size == sizeof(struct table_file);
}

/* Names both versions of a directory that is not ours, by their layouts. */
static void tell_version(const char *directory, int descriptor, char *why, size_t why_size)
{
    struct table_head head;
    if (table_head_read(descriptor, &head) && head.layout != TABLE_LAYOUT)
        snprintf(why, why_size,
                 "The directory %s has layout %u, of another version of softverbs; this one has layout %d (see "
                 "\"softverbs version\"). End its processes, or name another directory with SOFTVERBS_DIR.",
                 directory, head.layout, TABLE_LAYOUT);
    else
        snprintf(why, why_size,
                 "The directory %s belongs to another version of softverbs than this one of layout %d, or its table "
                 "was truncated. End its processes, or name another directory with SOFTVERBS_DIR.",
                 directory, TABLE_LAYOUT);
}

/* Locks all of a table. Returns 0 or errno. A process that is replacing it holds it for a moment only. */
static int lock_all(const char *directory, int descriptor)
{
    int error = EAGAIN;
    for (int i = 0; i < REPLACING_TRIES && table_lock_is_held(error); i++) {
        if (table_lock_bytes(descriptor, F_SETLK, F_WRLCK, 0, 0))
            return 0;
        error = errno;
        if (!table_has_name(directory, descriptor))
            return EAGAIN;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return error;
}

/* Replaces a table of another layout. If a process has locked any byte of it, it is in use. If not, we lock all of it
 * while we put a new one in its place, and processes that waited for the lock then find another file under the name. */
static int replace(const char *directory, int descriptor, char *why, size_t why_size)
{
    int error = lock_all(directory, descriptor);
    if (!table_has_name(directory, descriptor))
        return EAGAIN;
    if (error && !table_lock_is_held(error))
        return fail(error, directory, "locked", why, why_size);
    if (error) {
        tell_version(directory, descriptor, why, why_size);
        return EBUSY;
    }
    error = table_open_make(directory, true);
    return error && error != ENOENT ? fail(error, directory, "replaced", why, why_size) : EAGAIN;
}

/* Any lock of another process counts, as in `replace`. */
static bool is_unused(int descriptor)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return !fcntl(descriptor, F_GETLK, &lock) && lock.l_type == F_UNLCK;
}

static struct table *find_opened(const struct stat *status)
{
    struct table *table = opened;
    while (table && !(table->device == status->st_dev && table->inode == status->st_ino))
        table = table->next;
    return table;
}

/* Called in a signal handler. */
static void lose(struct guard_region *region)
{
    struct table *table = container_of(region, struct table, region);
    int waker = atomic_load(&table->waker);
    atomic_store(&table->lost, true);
    if (waker >= 0)
        control_wake(waker);
}

static int keep(struct table **result, const char *directory, int descriptor)
{
    struct stat status;
    struct table *table = calloc(1, sizeof *table);
    if (!table || fstat(descriptor, &status)) {
        free(table);
        return ENOMEM;
    }
    table->file = mapping_make(sizeof *table->file, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (table->file == MAP_FAILED) {
        free(table);
        return errno;
    }
    /* An ordinary user's program may lock 8 MiB of memory, and this file would take a quarter. A process reads only a
     * few of its pages, as the file has the claims of the whole host. */
    munlock(table->file, sizeof *table->file);
    table->region = (struct guard_region){table->file, sizeof *table->file, lose};
    guard_region_add(&table->region); /* where too many tables are open, one that is truncated ends the process */
    atomic_store(&table->waker, -1);
    table->descriptor = descriptor;
    lock_set_rank(&table->exclusive, LOCK_INNERMOST);
    table->users = 1;
    table->device = status.st_dev;
    table->inode = status.st_ino;
    snprintf(table->directory, sizeof table->directory, "%s", directory);
    table->next = opened;
    *result = opened = table;
    return 0;
}

/* Makes one attempt; EAGAIN: something changed meanwhile, try again. */
static int try_open(struct table **result, const char *directory, bool create, char *why, size_t why_size)
{
    char path[PATH_SIZE];
    struct stat status;
    path_of(directory, path);
    if (!stat(path, &status) && (*result = find_opened(&status))) {
        if (atomic_load(&(*result)->lost))
            return fail(EIO, directory, "used, as another process has truncated it", why, why_size);
        (*result)->users++;
        return 0;
    }
    int descriptor = descriptor_raise(open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (descriptor < 0 && errno == ENOENT && create) {
        int error = table_open_make(directory, false);
        return !error || error == EEXIST || error == ENOENT ? EAGAIN : fail(error, directory, "made", why, why_size);
    }
    if (descriptor < 0)
        return fail(errno, directory, "opened", why, why_size);
    int error = EBUSY;
    directory_share(directory, descriptor); /* its owner may have opened the directory since; no other user can */
    if (is_ours(descriptor))
        error = keep(result, directory, descriptor);
    else if (create)
        error = replace(directory, descriptor, why, why_size);
    else if (is_unused(descriptor))
        error = ESTALE;
    else
        tell_version(directory, descriptor, why, why_size);
    if (error)
        close(descriptor);
    return error;
}

int table_open(struct table **result, const char *directory, bool create, char *why, size_t why_size)
{
    int error = directory_check(directory, create, why, why_size);
    if (error)
        return error;
    lock_take(&opening);
    error = EAGAIN;
    for (int i = 0; error == EAGAIN && i < TRIES; i++)
        error = try_open(result, directory, create, why, why_size);
    lock_release(&opening);
    return error == EAGAIN ? fail(EAGAIN, directory, "made", why, why_size) : error;
}

static void unlist(const struct table *table)
{
    struct table **at = &opened;
    while (*at != table)
        at = &(*at)->next;
    *at = table->next;
}

void table_close(struct table *table)
{
    lock_take(&opening);
    bool last = !--table->users;
    if (last)
        unlist(table);
    lock_release(&opening);
    if (!last)
        return;
    guard_region_remove(&table->region);
    munmap(table->file, sizeof *table->file);
    close(table->descriptor);
    free(table);
}

/* The child has one thread, so it takes the lock over; remaining pointers to the table find it empty. */
void table_abandon(struct table *table)
{
    lock_inherit(&table->exclusive);
    unlist(table);
    atomic_store(&table->self, 0);
    mmap(table->file, sizeof *table->file, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    close(table->descriptor);
    table->descriptor = -1;
}
