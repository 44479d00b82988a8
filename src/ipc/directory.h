/* The directory in which the processes of one user and network namespace meet. */
#ifndef IPC_DIRECTORY_H
#define IPC_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>

/* Sees to it that the directory is there, ours, for us alone and no symbolic link. `create`: makes it. 0, or errno and
 * a sentence. */
int directory_check(const char *directory, bool create, char *why, size_t why_size);

#endif
