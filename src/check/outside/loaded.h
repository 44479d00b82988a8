/* Replaces functions that the program and the libraries loaded with it import through their tables of symbols. Objects
 * that a program loads later are left alone. */
#pragma once

#include "calls/imports.h"

typedef imports_function *loaded_original __attribute__((may_alias));

/* Replaces the functions of these names in all loaded objects but this library, the C library, libraries that the
 * checker itself uses, the object that has the function, and libraries whose names begin with `except` (or NULL).
 * Before the program runs.
 *
 * `originals` are the addresses of the functions, which the replacements call. A program that is linked to a fixed
 * address and takes the address of a function has a stub, which is the function's address in all libraries, and uses
 * the program's entry: the original is then the old value of the entry, or the entry stays if that is not known yet. */
void loaded_replace(const struct imports_entry *, loaded_original *originals, unsigned count, const char *except);
