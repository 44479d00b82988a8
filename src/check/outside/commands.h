/* The commands of librdmacm, also if libraries that the program loads later make them. */
#pragma once

#include "calls/calls.h"

/* Fills in the layer's functions for the commands. */
void commands_fill(struct calls *);
