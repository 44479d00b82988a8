/* Processes that run softverbs on this host and do not meet with this one: another user's, or in another directory. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Writes whose processes they are: "user 1000 runs softverbs on this host, too" if another user's are in that user's
 * default directory, else "processes meet in /tmp/softverbs-2, too", this user's default directory first. False: no
 * such process is found in this network namespace, or there is no /proc. Only names that contain "/softverbs-" are
 * known, and only the first 2000 lines of the kernel's list are read, at most once in a second. Any user can forge an
 * entry about himself, so nothing is decided by it. errno stays as it is. Thread-safe. */
bool other_directories_find(const char *directory, char *to, size_t size);
