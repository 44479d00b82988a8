/* The owners of files and processes. The kernel shows all users that have no number in a user namespace by the same
 * number (/proc/sys/kernel/overflowuid, 65534), which a user of that namespace may have as well (user_namespaces(7)).
 * There this number proves nothing, and the kernel is asked for something that it permits to the owner alone. Where the
 * namespace maps all users, as the first one does, the number is exact.
 *
 * Thread-safe; errno stays as it was. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Returns true if the number is this process's effective one and no other user is shown by it here. */
bool user_is_own(uid_t);

/* Returns true if the number is this process's effective one, even if other users are shown by it. For messages, and
 * where something else keeps others out. */
bool user_has_own_number(uid_t);

/* Returns true if this process's effective user owns the file of this status: `name` in the directory (AT_FDCWD: a
 * path; a link is not followed), or with an empty name the open file `directory`, which may have been opened with
 * O_PATH. May set the time of the file's last change. */
bool user_owns_file(int directory, const char *name, const struct stat *);

/* Returns true if this process's effective user runs the process, whose user and number the kernel has passed
 * (SCM_CREDENTIALS, SO_PEERCRED). 0 is a process of another namespace. Where the user's number proves nothing, a
 * process that has got the number of an ended one is taken for it. */
bool user_owns_process(uid_t, pid_t);

/* Returns true if both numbers are certainly one user. */
bool user_is_same(uid_t, uid_t);
