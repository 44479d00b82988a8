/* The library's helpers for sysfs. librdmacm, ibv_devinfo and Open MPI call them; no public header declares them. */
#pragma once

#include <stddef.h>

/* Returns SYSFS_PATH without its last slashes, or "/sys" where it is not set. A program with more rights than its user
 * (set-uid) ignores the variable. Every call returns the same pointer. */
const char *ibv_get_sysfs_path(void);

/* Reads DIRECTORY/FILE into the buffer, drops the last line end and appends a zero byte. Returns the length, or -1 if
 * the file can't be read or the zero byte has no room. An empty file leaves the buffer untouched. */
int ibv_read_sysfs_file(const char *directory, const char *file, char *buffer, size_t size);
