/* The kernel's messages about changes of network interfaces (rtnetlink(7)): which interface a message is about. The
 * receiver then queries the interface's new state (config_read_interface), so a message that is damaged or made up does
 * no harm. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Opens a non-blocking socket that gets changes of links and addresses in the calling thread's network namespace.
 * Returns -1 with errno set if it can't. */
int interface_news_open(void);

/* Returns true if one of the messages of a datagram of the kernel is about the interface with this name or with this
 * index (0: no index). A message that is cut off or damaged is about no interface. */
bool interface_news_concern(const void *messages, size_t length, const char *name, unsigned index);
