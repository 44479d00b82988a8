/* The commands of librdmacm, also those of libraries that the program loads later. */
#ifndef CHECK_OUTSIDE_COMMANDS_H
#define CHECK_OUTSIDE_COMMANDS_H

#include "calls/calls.h"

/* Fills in the layer's functions for the commands. */
void commands_fill(struct calls *);

#endif
