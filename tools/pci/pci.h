/* The PCI functions that devices resemble, and functions of GPUs that need not exist: the setting PCI, or the profile's
 * key `pci`. A list with commas:
 *
 *   [gpu=]ADDRESS begins a function. It is a PCI address, 0000:18:00.0, or the path that a kernel has below
 *                 /sys/devices, as in pci0000:17/0000:17:01.0/0000:18:00.0. An address alone is on the bus of its
 *                 number, where a path of the list places that bus, and else on a root bus. The functions without gpu=
 *                 belong to the devices, in their order.
 *   none          the next device has no PCI function
 *   KEY=VALUE     a key of the function before it: pci.def */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/device.h"

enum {
    PCI_PATH_MAX = 112, /* a root bus, seven functions and the zero */
    PCI_ADDRESS = 12,   /* letters of 0000:18:00.0 */
    PCI_FUNCTIONS_MAX = 32,
    PCI_LIST_MAX = 4096,
};

enum pci_key {
#define PCI_KEY(key, read, least, most, words) PCI_##key,
#include "pci/pci.def"
    PCI_KEYS
};

struct pci_function {
    char path[PCI_PATH_MAX]; /* below /sys/devices; empty: no function */
    bool gpu;
    bool set[PCI_KEYS];
    int64_t values[PCI_KEYS]; /* speed: in tenths of GT/s */
    char cpus[64];            /* the key cpus, as a kernel lists processors */
};

struct pci_layout {
    unsigned count, device_count; /* all functions; the devices' functions, `none` included */
    struct pci_function functions[PCI_FUNCTIONS_MAX];
    uint8_t device[DEVICES_MAX]; /* index of each device's function */
};

/* False: `why` is a sentence. */
bool pci_parse(const char *list, struct pci_layout *, char *why, size_t size);

/* The address in the path: its last part. */
const char *pci_address(const char *path);

/* The layout of this process, read once: the setting's, or else the profile's. A list with a mistake counts as empty.
 */
const struct pci_layout *pci_layout(void);

/* The function of the device, or NULL. */
const struct pci_function *pci_of_device(const struct pci_layout *, unsigned device);

/* Returns true if that number of devices can have these functions, and this machine has no function at their addresses.
 * If not, `why` is a sentence. */
bool pci_fits(const struct pci_layout *, unsigned devices, char *why, size_t size);

/* Whether the kernel has this path below /sys: the libc of a command within `softverbs run` shows that one's, too. */
bool pci_is_of_machine(const char *path);
