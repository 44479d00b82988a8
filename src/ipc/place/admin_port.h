/* Ports that `softverbs event port-down` took down for the whole host: each is a file in the directory, so that
 * processes which start later find the port down, too. Thread-safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

bool admin_port_is_down(const char *directory, const char *device);

/* Makes the directory if it is missing. Returns 0, or errno and a sentence. */
int admin_port_set(const char *directory, const char *device, bool down, char *why, size_t why_size);
