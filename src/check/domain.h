/* Calls on objects of thread domains, which are one thread's at a time. Under the shadow's lock. */
#ifndef CHECK_DOMAIN_H
#define CHECK_DOMAIN_H

#include "check/hooks.h"

/* The thread is in a call on this object until domain_leave. Nothing for NULL, and for one of no thread domain. */
void domain_enter(const struct shadow *, const char *call);
void domain_leave(const struct shadow *);

#endif
