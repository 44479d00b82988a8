#include "check/outside/meeting.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/nanos.h"
#include "base/read_clock.h"
#include "base/user.h"
#include "ipc/node.h"

/* A place of the file, which queue pairs share; the number says whose it is. */
struct entry {
    uint32_t number;
    struct shadow_connection connection;
    uint64_t reached; /* when it reached RTS */
};

enum { PLACES = 1 << 14 };

uint64_t meeting_now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

/* Where the directory is shared, its file may belong to another user, who could write anything there. */
static bool is_of_this_user(int file)
{
    struct stat status;
    return !fstat(file, &status) && S_ISREG(status.st_mode) && user_owns_file(file, "", &status);
}

/* -1: it can't be used. */
static int open_file(void)
{
    char directory[NODE_DIRECTORY_MAX + 1], path[NODE_DIRECTORY_MAX + 17];
    if (!node_directory(directory))
        return -1;
    snprintf(path, sizeof path, "%s/last-connected", directory);
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (file >= 0 && !is_of_this_user(file)) {
        close(file);
        return -1;
    }
    return file;
}

static off_t place_of(uint32_t number)
{
    return (off_t)(number % PLACES) * (off_t)sizeof(struct entry);
}

static bool is_valid(const struct entry *entry)
{
    return entry->connection.mtu >= IBV_MTU_256 && entry->connection.mtu <= IBV_MTU_4096;
}

/* Reads the entry twice, since another process may be writing. */
static bool read_entry(int file, uint32_t number, struct entry *entry)
{
    struct entry again;
    ssize_t size = sizeof again;
    return pread(file, entry, sizeof *entry, place_of(number)) == size &&
           pread(file, &again, sizeof again, place_of(number)) == size && !memcmp(entry, &again, sizeof again) &&
           entry->number == number && is_valid(entry);
}

/* A peer that reached RTS before ours began has an earlier connection. */
bool meeting_exchange(uint32_t number, const struct shadow_connection *own, struct shadow_connection *peer)
{
    struct entry entry, other;
    memset(&entry, 0, sizeof entry);
    entry.number = number;
    entry.connection = *own;
    entry.reached = meeting_now();
    int file = open_file();
    if (file < 0)
        return false;
    bool written = pwrite(file, &entry, sizeof entry, place_of(number)) == (ssize_t)sizeof entry;
    bool met = written && own->peer != number && read_entry(file, own->peer, &other) &&
               other.connection.peer == number && other.reached >= own->begun;
    if (met)
        *peer = other.connection;
    close(file);
    return met;
}
