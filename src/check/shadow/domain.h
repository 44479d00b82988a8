/* Calls on objects of thread domains, which only one thread may use at a time. Under the shadow's lock. */
#pragma once

#include "check/hooks_call.h"

/* The thread is in a call on this object until domain_leave. Nothing happens for NULL, and without a thread domain. */
void domain_enter(const struct shadow *, const char *call);
void domain_leave(const struct shadow *);
