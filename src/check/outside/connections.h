/* Sees calls of librdmacm where the program and the libraries loaded with it import them (outside/loaded.h), since that
 * library hides its acknowledgements and channels. */
#pragma once

/* Does nothing if librdmacm is not loaded. Before the program runs. */
void connections_begin(void);
