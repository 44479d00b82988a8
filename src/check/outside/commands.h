/* The commands of librdmacm, also those of libraries that the program loads later. */
#ifndef CHECK_OUTSIDE_COMMANDS_H
#define CHECK_OUTSIDE_COMMANDS_H

#include "calls/calls.h"

/* The layer's functions for them. */
void commands_fill(struct calls *);

#endif
