/* Openings on the hosts of a lab: each has a /dev/shm with the directories where processes meet. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Returns true if no process has opened a device in /dev/shm of these hosts, each known by the process that holds it.
 * False too where that can't be seen. Leaves descriptors open (openings_count). */
bool unopened_on_hosts(const pid_t *holders, unsigned count);
