#include "ipc/table_lock.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include "base/uncancelled.h"
#include "ipc/table.h"

enum {
    LOCK_BYTE = TABLE_SLOTS, /* the lock for joining and sweeping; the bytes before it are the slots' */
    LOCK_WAIT_MS = 5000,     /* ms, with each holder: a stopped process may hold it for ever */
    LOCK_SOON = 100,
    LOCK_STEP = 20, /* ms between two looks, at most */
};

bool table_lock_bytes(int descriptor, int command, short type, off_t start, off_t length)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length};
    return fcntl(descriptor, command, &lock) == 0;
}

bool table_has_name(const char *directory, int descriptor)
{
    struct stat named, ours;
    char path[TABLE_NAME_MAX + 32];
    snprintf(path, sizeof path, "%s/table", directory);
    return !stat(path, &named) && !fstat(descriptor, &ours) && named.st_dev == ours.st_dev &&
           named.st_ino == ours.st_ino;
}

pid_t table_lock_holder(const struct table *table)
{
    return table_pid(table, LOCK_BYTE);
}

/* 0, or errno of F_SETLK. */
static int try_lock(struct table *table)
{
    lock_take(&table->exclusive);
    if (table_lock_bytes(table->descriptor, F_SETLK, F_WRLCK, LOCK_BYTE, 1))
        return 0;
    int error = errno;
    lock_release(&table->exclusive);
    return error;
}

/* Hundreds of processes that start at the same time take turns, and all of them succeed: patience begins anew with each
 * holder, and a process that has waited for longer looks less often, as the holder needs the processor. */
static int lock_in_turn(struct table *table, long timeout)
{
    pid_t holder = 0;
    for (long waited = 0, step = 1; waited < timeout; waited += step) {
        int error = try_lock(table);
        if (!table_lock_is_held(error))
            return error;
        pid_t now = table_lock_holder(table);
        waited = now == holder ? waited : 0;
        holder = now;
        int before = uncancelled_begin();
        nanosleep(&(struct timespec){.tv_nsec = step * 1000000}, NULL);
        uncancelled_end(before);
        step = step < LOCK_STEP ? step + 1 : LOCK_STEP;
    }
    return EBUSY;
}

static int lock_within(struct table *table, long timeout)
{
    int error = lock_in_turn(table, timeout);
    if (error)
        return error;
    if (table_has_name(table->directory, table->descriptor))
        return 0;
    table_unlock(table);
    return ESTALE;
}

int table_lock(struct table *table)
{
    return lock_within(table, LOCK_WAIT_MS);
}

int table_lock_soon(struct table *table)
{
    return lock_within(table, LOCK_SOON);
}

void table_unlock(struct table *table)
{
    table_lock_bytes(table->descriptor, F_SETLK, F_UNLCK, LOCK_BYTE, 1);
    lock_release(&table->exclusive);
}

bool table_alive(const struct table *table, unsigned slot)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = slot, .l_len = 1};
    uint32_t self = table_self(table);
    if (self && table_owner_slot(self) == slot)
        return true;
    return !fcntl(table->descriptor, F_GETLK, &lock) && lock.l_type != F_UNLCK;
}

pid_t table_pid(const struct table *table, unsigned slot)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = slot, .l_len = 1};
    bool held = !fcntl(table->descriptor, F_GETLK, &lock) && lock.l_type != F_UNLCK;
    return held ? lock.l_pid : 0;
}

bool table_is(const struct table *table, unsigned slot, uint32_t generation)
{
    const struct table_slot *entry = &table->file->slots[slot];
    return table_alive(table, slot) && atomic_load(&entry->state) == TABLE_LIVE &&
           atomic_load(&entry->generation) == generation;
}
