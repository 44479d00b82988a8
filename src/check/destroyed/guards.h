/* Reports and refuses calls that name a destroyed object, and notes the call of each thread for callers_other. */
#pragma once

/* Puts a layer around the checker's, before the program runs. */
void guards_begin(void);
