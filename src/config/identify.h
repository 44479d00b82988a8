/* The addresses of a device that serves this host only. */
#pragma once

#include <stdbool.h>

#include "config/device.h"

/* Gives the device this index, and the link layer, MAC, GUID, GIDs and LID of that index, on which all processes of the
 * host agree. The GUIDs of the two link layers differ, as their devices must not reach each other. */
void identify_device(struct device *, unsigned index, bool infiniband);
