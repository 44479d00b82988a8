/* Calls on objects of thread domains, which only one thread may use at a time. Under the shadow's lock. */
#pragma once

#include "check/hooks_call.h"

/* Notes that this thread is in a call on the object until domain_leave. Does nothing for NULL or without a domain. */
void domain_enter(const struct shadow *, const char *call);
void domain_leave(const struct shadow *);
