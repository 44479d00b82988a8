/* The addresses of a device that serves this host only. */
#ifndef CONFIG_IDENTIFY_H
#define CONFIG_IDENTIFY_H

#include <stdbool.h>

#include "config/device.h"

/* Gives the device this index, and the link layer, MAC, GUID, GIDs and LID that all processes of the host agree on for
 * a device with it. Devices of one link layer must not reach those of the other, so their GUIDs differ. */
void identify_device(struct device *, unsigned index, bool infiniband);

#endif
