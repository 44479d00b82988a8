/* Record locks on the table's file; for table*.c only. */
#ifndef IPC_TABLE_LOCK_H
#define IPC_TABLE_LOCK_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>

/* fcntl F_SETLK on `length` bytes (0: to the end) from `start`: did it succeed? */
bool table_lock_bytes(int descriptor, int command, short type, off_t start, off_t length);

/* Is this errno of F_SETLK that of bytes which another process has? All others are the system's refusals, which no
 * patience changes. */
static inline bool table_lock_is_held(int error)
{
    return error == EAGAIN || error == EACCES;
}

/* Does the directory's table still have this descriptor's inode? */
bool table_has_name(const char *directory, int descriptor);

#endif
