/* The tree that the kernel would show of our devices below /sys/class and /dev, as a list. */
#pragma once

#include "config/device.h"
#include "pci/entry.h"

/* class/infiniband, class/infiniband_verbs, class/misc/rdma_cm, devices/softverbs and dev/infiniband, as
 * Documentation/ABI/stable/sysfs-class-infiniband of the kernel describes them; if devices have PCI functions
 * (pci/pci.h), these and the files of pci/files.h replace devices/softverbs. Counters are 0; counters/sysfs_command.c
 * writes their values. */
void sysfs_describe(const struct device *, unsigned count, sysfs_visit *, void *context);
