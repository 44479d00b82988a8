/* Ports that were taken down for the whole host, by `softverbs event port-down`: one file in the directory for each, so
 * that processes which start later find them down, too. Thread-safe. */
#ifndef IPC_ADMIN_PORT_H
#define IPC_ADMIN_PORT_H

#include <stdbool.h>
#include <stddef.h>

bool admin_port_is_down(const char *directory, const char *device);

/* Makes the directory if need be. 0, or errno and a sentence. */
int admin_port_set(const char *directory, const char *device, bool down, char *why, size_t why_size);

#endif
