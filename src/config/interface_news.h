/* The kernel's messages while network interfaces change (rtnetlink(7)): which interface a message is about. The new
 * state of the interface is queried then (config_read_interface), so a message that is damaged or made up does no
 * harm. */
#ifndef CONFIG_INTERFACE_NEWS_H
#define CONFIG_INTERFACE_NEWS_H

#include <stdbool.h>
#include <stddef.h>

/* A non-blocking socket that gets changes of links and addresses in the calling thread's network namespace; -1 and
 * errno. */
int interface_news_open(void);

/* Returns true if one of these messages, as they stand in a datagram of the kernel, is about the interface with this
 * name or with this index (0: it has none). A message that is cut off or damaged is about none. */
bool interface_news_concern(const void *messages, size_t length, const char *name, unsigned index);

#endif
