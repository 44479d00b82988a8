/* The tree that the kernel would show of our devices below /sys/class and /dev, as a list. */
#ifndef TOOLS_SYSFS_H
#define TOOLS_SYSFS_H

#include "config/device.h"

enum sysfs_kind { SYSFS_DIRECTORY, SYSFS_FILE, SYSFS_LINK };

/* `path` is relative to the tree's root; `text` is a file's content or a link's target, NULL for a directory.
 * A directory comes before what is in it. */
typedef void sysfs_visit(void *context, enum sysfs_kind, const char *path, const char *text);

/* class/infiniband, class/infiniband_verbs, class/misc/rdma_cm, devices/softverbs and dev/infiniband, as
 * Documentation/ABI/stable/sysfs-class-infiniband of the kernel describes them. Counters are 0;
 * counters/sysfs_command.c writes their values. */
void sysfs_describe(const struct device *, unsigned count, sysfs_visit *, void *context);

#endif
