#include "base/user.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/text/text.h"
#include "base/uncancelled.h"

enum { OVERFLOW_STANDARD = 65534 };
#define NUMBERS UINT32_MAX /* how many are mapped where all users are: UINT32_MAX itself is not a user's number */

static bool is_overflow(uid_t user)
{
    char text[16];
    bool known = text_read_at(AT_FDCWD, "/proc/sys/kernel/overflowuid", text, sizeof text);
    return user == (known ? strtoul(text, NULL, 10) : OVERFLOW_STANDARD);
}

/* Reads lines of three numbers; the third is how many numbers the line maps. */
static bool maps_all(void)
{
    char text[4096], *at = text;
    uint64_t mapped = 0;
    unsigned long long count;
    int length;
    text_read_at(AT_FDCWD, "/proc/self/uid_map", text, sizeof text);
    for (; sscanf(at, "%*u %*u %llu%n", &count, &length) == 1; at += length)
        mapped += count;
    return mapped >= NUMBERS;
}

/* If /proc can't be read, the standard number counts as one that stands for many users. */
static bool stands_for_many(uid_t user)
{
    int error = errno, before = uncancelled_begin();
    bool many = is_overflow(user) && !maps_all();
    uncancelled_end(before);
    errno = error;
    return many;
}

bool user_has_own_number(uid_t user)
{
    return user == geteuid();
}

bool user_is_same(uid_t one, uid_t other)
{
    return one == other && !stands_for_many(one);
}

bool user_is_own(uid_t user)
{
    return user_is_same(user, geteuid());
}

/* Sets the time of the last access to what it is. The kernel permits it to the owner, and to a process that has
 * CAP_FOWNER over a user with a number here (utimensat(2)). */
static bool may_set_times(int directory, const char *name, const struct stat *status)
{
    const struct timespec times[] = {status->st_atim, {.tv_nsec = UTIME_OMIT}};
    int error = errno;
    bool may = !utimensat(directory, name, times, AT_SYMLINK_NOFOLLOW | (*name ? 0 : AT_EMPTY_PATH));
    errno = error;
    return may;
}

bool user_owns_file(int directory, const char *name, const struct stat *status)
{
    return user_has_own_number(status->st_uid) &&
           (!stands_for_many(status->st_uid) || may_set_times(directory, name, status));
}

/* Sends signal 0, which only asks whether a signal is permitted: it is for processes of the same user (kill(2)). */
static bool may_signal(pid_t process)
{
    int error = errno;
    bool may = process > 0 && !kill(process, 0);
    errno = error;
    return may;
}

bool user_owns_process(uid_t user, pid_t process)
{
    return user_has_own_number(user) && (!stands_for_many(user) || may_signal(process));
}
