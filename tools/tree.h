/* The tree of sysfs.h as files: made once for each user and content, shared by all programs that run on it. */
#pragma once

#include <stddef.h>

#include "config/device.h"

/* Makes sure that the tree for these devices exists, and writes its path (at most 255 bytes) to `path`. It is in the
 * first of /dev/shm, $XDG_RUNTIME_DIR and /tmp that can be written, as softverbs-UID-USERNS-paths-HASH, with a HASH of
 * its content: trees never change, and processes with other devices have other trees. If another user has taken the
 * name it has a suffix (ipc/place/userdir.h). 0 or a positive errno, and then *why is an English sentence. */
int tree_make(const struct device *, unsigned count, char path[256], char *why, size_t why_size);

/* Writes the same files into the directory, which is there; what is there already stays. 0 or a positive errno. */
int tree_write(const char *path, const struct device *, unsigned count);
