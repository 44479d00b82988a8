/* Calls of librdmacm, seen where the program and the libraries loaded with it import them (outside/loaded.h), since
 * that library keeps acknowledgements and channels to itself. */
#pragma once

/* Does nothing if librdmacm is not loaded. Before the program runs. */
void connections_begin(void);
