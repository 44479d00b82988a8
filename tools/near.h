/* Names that are like others: what the user may have meant. */
#ifndef TOOLS_NEAR_H
#define TOOLS_NEAR_H

#include <stddef.h>

/* Letters to change, add or leave out until one name is the other. */
size_t near_distance(const char *from, const char *to);

#endif
