/* Calls that name a destroyed object are reported and refused, and each thread's call is known to callers_other. */
#ifndef CHECK_GONE_GUARDS_H
#define CHECK_GONE_GUARDS_H

/* Around the checker's layer, before the program runs. */
void guards_begin(void);

#endif
