/* Asynchronous events that rules of scripts raise at calls. */
#ifndef INJECT_RAISE_H
#define INJECT_RAISE_H

#include "base/nanos.h"
#include "calls/subject.h"
#include "script/raised.h"

/* Raises the event for the object that the call is about, or for its device, with all its effects there. Nothing
 * happens if the call is about neither. The caller holds no lock but LOCK_PROGRAM. */
void raise_event(const struct calls_subject *, const struct script_raised *);

/* The name of the device that the call is about; NULL: it is about no device. */
const char *raise_device(const struct calls_subject *);

/* raise_freeze stops the helper thread of the object's process for that time; raise_release sends the packets that the
 * process holds. The caller holds no lock but LOCK_PROGRAM. */
void raise_freeze(const struct calls_subject *, nanos);
void raise_release(const struct calls_subject *);

#endif
