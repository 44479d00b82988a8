/* Sees the commands of librdmacm, also if a library that the program loads later makes them. */
#pragma once

#include "calls/calls.h"

/* Fills in the layer's functions for the commands. */
void commands_fill(struct calls *);
