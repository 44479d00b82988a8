/* The library's helpers for sysfs. Exported, used by librdmacm, ibv_devinfo and Open MPI; no public header declares
 * them. */
#ifndef ABI_SYSFS_H
#define ABI_SYSFS_H

#include <stddef.h>

/* SYSFS_PATH without its last slashes, or "/sys"; the environment counts only in a process that has no more rights than
 * its user. The same pointer for ever. */
const char *ibv_get_sysfs_path(void);

/* Reads DIRECTORY/FILE into the buffer, without the last line end and with a zero behind it. The length, or -1: the
 * file can't be read, or the zero has no room. An empty file leaves the buffer untouched. */
int ibv_read_sysfs_file(const char *directory, const char *file, char *buffer, size_t size);

#endif
