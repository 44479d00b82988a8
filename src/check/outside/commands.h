/* Sees the commands of librdmacm, also those of libraries that the program loads later. */
#pragma once

#include "calls/calls.h"

/* Fills in the layer's functions for the commands. */
void commands_fill(struct calls *);
