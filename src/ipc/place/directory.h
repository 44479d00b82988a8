/* The directory in which processes meet: the processes of one user, or of several users if its owner has opened it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Ensures that the directory exists, is not a symbolic link, and is for this user alone (0700) or open. `create`: makes
 * it. Returns 0, or errno and a sentence. */
int directory_check(const char *directory, bool create, char *why, size_t why_size);

/* Returns true if processes of other users may enter it. Its owner grants that by its mode, 0770 or 0777 without the
 * sticky bit, and users join it by naming it with SOFTVERBS_DIR. In a directory that softverbs chooses, only messages
 * of the same user count. */
bool directory_is_open(const char *directory);

/* If the directory is open, gives a file that we made there to those that may enter it: its group, or all users. The
 * descriptor may have been opened with O_PATH. Returns 0 or errno. */
int directory_share(const char *directory, int descriptor);
/* directory_share for the socket of this name. */
int directory_share_socket(const char *directory, const char *name);

/* Returns 0 if this process's user bound the socket of this name, so that no other user answers there. EPERM: another
 * user did; another errno: it can't be looked at. */
int directory_owns_socket(const char *name);
