/* What was loaded with the program: calls that it and its libraries make through their tables of imported symbols can
 * be led here. What a program loads later is not seen. */
#ifndef CHECK_OUTSIDE_LOADED_H
#define CHECK_OUTSIDE_LOADED_H

#include "calls/imports.h"

/* Leads calls of these names to their replacements, but for those of this library, of the C library and of what the
 * checker itself uses, and of libraries whose names begin with `except` (NULL: no more). Before the program runs. */
void loaded_replace(const struct imports_entry *, unsigned count, const char *except);

#endif
