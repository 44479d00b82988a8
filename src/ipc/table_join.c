/* Joining and leaving the table, and sweeping up after processes that died. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text/text.h"
#include "ipc/table.h"
#include "ipc/table_lock.h"
#include "link/doorbell.h"

void table_socket_name(const char *directory, unsigned slot, char *to)
{
    snprintf(to, CONTROL_NAME_MAX, "%s/%u.sock", directory, slot);
}

/* Field 22 of /proc/self/stat; the second field may contain anything, but ends at the last parenthesis. */
static uint64_t start_time(void)
{
    char text[1024];
    unsigned long long ticks = 0;
    text_read_at(AT_FDCWD, "/proc/self/stat", text, sizeof text);
    char *rest = strrchr(text, ')');
    if (!rest || sscanf(rest + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
                        &ticks) != 1)
        return 0;
    return ticks;
}

static void program_name(char *to)
{
    memset(to, 0, TABLE_PROGRAM_MAX);
    int file = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? 0 : read(file, to, TABLE_PROGRAM_MAX - 1);
    if (file >= 0)
        close(file);
    to[length > 0 ? length : 0] = 0;
    to[strcspn(to, "\n")] = 0;
}

static void take_slot(struct table *table, unsigned slot)
{
    struct table_slot *entry = &table->file->slots[slot];
    uint32_t generation = (atomic_load(&entry->generation) + 1) & TABLE_GENERATION_MASK;
    generation = generation ? generation : 1;
    atomic_store(&entry->state, TABLE_JOINING);
    atomic_store(&entry->generation, generation);
    atomic_store(&table->self, table_owner(slot, generation));
    atomic_store(&entry->pid, getpid());
    entry->start_time = start_time();
    program_name(entry->program);
    attention_wake(&entry->attention); /* the count of sleeps stays: a sender may be about to end an earlier one */
    attention_want_no_marks(&entry->attention);
    atomic_store(&entry->attention.fences, FENCES_NOT_YET);
    marks_clear(&entry->attention.marks);
    atomic_store(&entry->inbox.sent, 0);
    atomic_store(&entry->inbox.looks, 0);
}

static int table_join_refused(const struct table *table, int error, char *why, size_t why_size)
{
    if (error == EBUSY)
        snprintf(why, why_size,
                 "Process %d keeps the table of processes in %s locked; it may be stopped (0: in another container): "
                 "%s.",
                 (int)table_lock_holder(table), table->directory, strerror(error));
    else if (error == EUSERS)
        snprintf(why, why_size, "All %d places for processes in %s are taken.", TABLE_SLOTS, table->directory);
    else
        snprintf(why, why_size,
                 "The table of processes in %s can't be locked: fcntl(F_SETLK) is refused (%s). A filter of system "
                 "calls (seccomp) or a file system without locks does that.",
                 table->directory, strerror(error));
    return error;
}

/* 0, EUSERS, or errno of a lock that the system refuses. */
static int take_any_slot(struct table *table)
{
    for (unsigned slot = 0; slot < TABLE_SLOTS; slot++) {
        if (atomic_load(&table->file->slots[slot].state) != TABLE_FREE)
            continue;
        if (table_lock_bytes(table->descriptor, F_SETLK, F_WRLCK, slot, 1)) {
            take_slot(table, slot);
            return 0;
        }
        if (!table_lock_is_held(errno))
            return errno;
    }
    return EUSERS;
}

int table_join(struct table *table, char *why, size_t why_size)
{
    int error = table_lock(table);
    if (error)
        return table_join_refused(table, error, why, why_size);
    table_sweep(table);
    error = take_any_slot(table);
    table_unlock(table);
    return error ? table_join_refused(table, error, why, why_size) : 0;
}

void table_announce(struct table *table)
{
    atomic_store(&table->file->slots[table_owner_slot(table_self(table))].state, TABLE_LIVE);
}

/* Frees what belongs to the processes whose slots are marked. */
static void table_join_release(struct table *table, const bool *slots)
{
    struct table_file *file = table->file;
    for (unsigned i = 0; i < TABLE_JOINS; i++)
        if (atomic_load(&file->joins[i].owner) && slots[table_owner_slot(atomic_load(&file->joins[i].owner))]) {
            atomic_store(&file->joins[i].count, 0);
            atomic_store(&file->joins[i].owner, 0);
        }
    for (unsigned i = 0; i < TABLE_PORTS; i++) {
        uint32_t owner = atomic_load_explicit(&file->ports[i].owner, memory_order_relaxed);
        if (owner && slots[table_owner_slot(owner)])
            atomic_store(&file->ports[i].owner, 0);
    }
    for (unsigned i = 0; i < TABLE_BLOCKS; i++) {
        uint32_t owner = atomic_load_explicit(&file->blocks[i], memory_order_relaxed);
        if (owner && slots[table_owner_slot(owner)])
            atomic_store(&file->blocks[i], 0);
    }
    for (unsigned i = 0; i < TABLE_SLOTS; i++)
        if (slots[i]) {
            char name[CONTROL_NAME_MAX];
            table_socket_name(table->directory, i, name);
            unlink(name);
            atomic_store(&file->slots[i].state, TABLE_FREE); /* last: until then the next sweep would do it again */
        }
}

/* No other process takes the slot until the lock of its byte is given back, or this process ends. */
static bool give_back(struct table *table, unsigned *slot)
{
    bool ours[TABLE_SLOTS] = {false};
    uint32_t self = atomic_exchange(&table->self, 0);
    *slot = table_owner_slot(self);
    if (!self)
        return false;
    ours[*slot] = true;
    atomic_store(&table->file->slots[*slot].state, TABLE_LEAVING);
    table_join_release(table, ours);
    return true;
}

void table_withdraw(struct table *table)
{
    unsigned slot;
    give_back(table, &slot);
}

void table_leave(struct table *table)
{
    unsigned slot;
    if (give_back(table, &slot))
        table_lock_bytes(table->descriptor, F_SETLK, F_UNLCK, slot, 1);
}

/* Removes tables that processes began to make (a process that still makes one will make another). */
static void remove_unfinished(const char *directory)
{
    char path[TABLE_NAME_MAX + 1 + sizeof(struct dirent)];
    struct dirent *entry;
    DIR *stream = opendir(directory);
    while (stream && (entry = readdir(stream)))
        if (!strncmp(entry->d_name, "new.", 4)) {
            snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
            unlink(path);
        }
    if (stream)
        closedir(stream);
}

int table_sweep(struct table *table)
{
    lock_assert_held(&table->exclusive);
    bool dead[TABLE_SLOTS] = {false};
    int count = 0;
    for (unsigned i = 0; i < TABLE_SLOTS; i++)
        if (atomic_load(&table->file->slots[i].state) != TABLE_FREE && !table_alive(table, i)) {
            dead[i] = true;
            count++;
        }
    if (count)
        table_join_release(table, dead);
    remove_unfinished(table->directory);
    return count;
}

int table_sweep_now(struct table *table)
{
    int error = table_lock_soon(table);
    if (error)
        return -error;
    int count = table_sweep(table);
    table_unlock(table);
    return count;
}
