/* free(3) of the program and its libraries, seen where they import it: in those that were loaded before the checker
 * began, but not in the C library and those that the checker itself uses. */
#pragma once

/* Sees these calls from now on. Before the program runs. */
void frees_begin(void);
