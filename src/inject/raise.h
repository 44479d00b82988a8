/* Asynchronous events that rules of scripts raise at calls. */
#ifndef INJECT_RAISE_H
#define INJECT_RAISE_H

#include "base/nanos.h"
#include "calls/subject.h"
#include "script/raised.h"

/* Raises the event for the object that the call is about, or for its device, with all that it does there. Nothing where
 * the call is about none. Under no lock except LOCK_PROGRAM. */
void raise_event(const struct calls_subject *, const struct script_raised *);

/* The name of the device that the call is about; NULL: it is about none. */
const char *raise_device(const struct calls_subject *);

/* The helper thread of the process does nothing for so long; the packets that it holds leave. Both are about the
 * process of the call's object. Likewise. */
void raise_freeze(const struct calls_subject *, nanos);
void raise_release(const struct calls_subject *);

#endif
