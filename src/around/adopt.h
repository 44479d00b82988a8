/* New objects of the other libibverbs become objects whose calls pass the layers: the pointers that they hold are kept
 * (held.h) and replaced; on the data path only while a layer wants the call. */
#pragma once

#include "calls/calls.h"

/* Puts the functions that make and destroy such objects into the bottom, around those that it has. Once. */
void adopt_begin(struct calls *bottom);
