/* The namespaces of a simulated run, in which process numbers, ports and shared memory are the same each time. */
#pragma once

#include <stdbool.h>

/* Enters new namespaces; a child of this process is the first in them. False after a sentence. */
bool space_enter(void);

/* In that child: mounts /proc and /dev/shm, and opens the loopback interface. It ends with its parent. False after a
 * sentence. */
bool space_furnish(void);
