/* Record locks on the table's file; for table*.c only. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>

/* Sets or clears a lock of `length` bytes (0: to the end) from `start` by fcntl(2). True: done; false: errno. */
bool table_lock_bytes(int descriptor, int command, short type, off_t start, off_t length);

/* Returns true if this errno of F_SETLK means that another process has locked the bytes. Any other errno is a refusal
 * of the system, which waiting does not change. */
static inline bool table_lock_is_held(int error)
{
    return error == EAGAIN || error == EACCES;
}

/* Returns true if the directory's table is still the file of this descriptor. */
bool table_has_name(const char *directory, int descriptor);
