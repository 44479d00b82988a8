/* The files of PCI functions in the tree of sysfs.h: the functions, the bridges and buses of their paths, and
 * bus/pci/devices and class/pci_bus, which also have the machine's own entries. */
#pragma once

#include <stdbool.h>

#include "pci/entry.h"
#include "pci/pci.h"

/* Call it after the directory `devices`, and before the entries in the functions. `infiniband`: the link layer.
 * `driver`: the name of the kernel's driver of the devices, or NULL. */
void pci_describe(struct place *, const struct pci_layout *, bool infiniband, const char *driver);

/* Describes a device's files with the processors near it: the list, or with NULL the processors of the NUMA node. */
void pci_describe_processors(const struct place *, int64_t numa, const char *list);
