/* The objects that were loaded with the program: calls that it and its libraries make through their tables of imported
 * symbols can be led here. Objects that a program loads later are not seen. */
#ifndef CHECK_OUTSIDE_LOADED_H
#define CHECK_OUTSIDE_LOADED_H

#include "calls/imports.h"

typedef imports_function *loaded_original __attribute__((may_alias));

/* Leads calls of these names to their replacements, but for those of this library, of the C library and of those that
 * the checker itself uses, of the object that has the function, and of libraries whose names begin with `except` (NULL:
 * no more). Before the program runs.
 *
 * `originals` are the addresses of the functions, which the replacements call. A program that is linked to a fixed
 * address and takes the address of a function has a stub, which is the function's address in all libraries, and leads
 * through the program's entry: there the original becomes what the entry had, or the entry stays as it is where that is
 * not known yet. */
void loaded_replace(const struct imports_entry *, loaded_original *originals, unsigned count, const char *except);

#endif
