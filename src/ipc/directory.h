/* The directory in which processes meet: those of one user, or of several where its owner has opened it. */
#ifndef IPC_DIRECTORY_H
#define IPC_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Ensures that the directory is there, no symbolic link, and ours for us alone (0700) or open. `create`: makes it. 0,
 * or errno and a sentence. */
int directory_check(const char *directory, bool create, char *why, size_t why_size);

/* Returns true if processes of other users may enter it. Its owner grants that by its mode, 0770 or 0777 without the
 * sticky bit, and users join it by naming it with SOFTVERBS_DIR. In a directory that softverbs chooses, only messages
 * of the same user count. */
bool directory_is_open(const char *directory);

/* Where the directory is open, gives what we made there to those who may enter it: its group, or all. The descriptor is
 * of a file, perhaps opened with O_PATH. 0 or errno. */
int directory_share(const char *directory, int descriptor);
/* The same of the socket of this name. */
int directory_share_socket(const char *directory, const char *name);

/* 0: the socket of this name was bound by this process's user, so who answers there is no other. EPERM: by another;
 * another errno: it can't be looked at. */
int directory_owns_socket(const char *name);

#endif
