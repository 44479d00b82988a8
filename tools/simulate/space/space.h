/* The namespaces of a simulated run, in which process numbers, ports and shared memory are the same each time. */
#pragma once

#include <stdbool.h>

/* In the first process of new namespaces (tools/lab/spaces.h): mounts /proc and /dev/shm, and opens the loopback interface.
 * It ends with its parent. False after a sentence. */
bool space_furnish(void);

/* Opens the loopback interface of the present network namespace. False: errno. */
bool space_open_loopback(void);
