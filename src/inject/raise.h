/* Asynchronous events that rules of scripts raise at calls. */
#ifndef INJECT_RAISE_H
#define INJECT_RAISE_H

#include "calls/subject.h"
#include "script/raised.h"

/* Raises the event for the object that the call is about, or for its device, with all that it does there. Nothing where
 * the call is about none. Under no lock but LOCK_PROGRAM. */
void raise_event(const struct calls_subject *, const struct script_raised *);

#endif
