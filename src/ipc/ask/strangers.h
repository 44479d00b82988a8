/* Processes that run softverbs on this host and do not meet with this one: another user's, or of another directory. */
#ifndef IPC_ASK_STRANGERS_H
#define IPC_ASK_STRANGERS_H

#include <stdbool.h>
#include <stddef.h>

/* Writes whose they are, of the first that is found: "user 1000 runs softverbs on this host, too" or "processes of this
 * user meet in /tmp/other". False: there are none in this network namespace, or there is no /proc. Any user can make
 * the kernel's list say so of himself, so nothing is decided by it. Thread-safe. */
bool strangers_find(const char *directory, char *to, size_t size);

#endif
