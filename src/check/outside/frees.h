/* Sees free(3) and realloc(3) of the program and of the libraries that were loaded with it, but not of the C library
 * and of those that the checker itself uses (outside/loaded.h). */
#pragma once

/* Sees these calls from now on. Before the program runs. */
void frees_begin(void);
