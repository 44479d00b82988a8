/* Asynchronous events that rules of scripts raise at calls. */
#pragma once

#include "base/nanos.h"
#include "calls/subject.h"
#include "script/raised.h"

/* Raises the event for the object that the call is about, or for its device, with all its effects there. Nothing
 * happens if the call is about neither. The caller holds no lock but LOCK_PROGRAM. */
void async_inject_event(const struct calls_subject *, const struct script_raised *);

/* The name of the device that the call is about; NULL: it is about no device. */
const char *async_inject_device(const struct calls_subject *);

/* async_inject_freeze stops the helper thread of the object's process for that time; async_inject_release sends the
 * packets that the process holds. The caller holds no lock but LOCK_PROGRAM. */
void async_inject_freeze(const struct calls_subject *, nanos);
void async_inject_release(const struct calls_subject *);
