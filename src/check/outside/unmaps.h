/* Sees calls that unmap, map, move or empty memory at a chosen place, of the program and of the libraries that were
 * loaded with it (outside/loaded.h). With --check=pages the checker first opens its protected pages there, so that it
 * never opens memory that the program has mapped since. */
#pragma once

/* Sees these calls from now on. Before the program runs. */
void unmaps_begin(void);
