/* Reporting and refusing calls that name a destroyed object, and noting each thread's call for callers_other. */
#pragma once

/* Puts a layer around the checker's, before the program runs. */
void guards_begin(void);
