/* Why an event of the connection manager brings bad news, for `softverbs explain`. */
#ifndef GSI_CM_REASON_H
#define GSI_CM_REASON_H

#include "cm/events.h"

struct process;

/* The reason of an event with this status; REASON_NONE: it is no bad news. */
enum reason cm_reason(enum cm_event_kind, int status);

/* Logs the reason of an event that is no good news; says nothing of others. Thread-safe; under no lock. */
void cm_reason_log(const struct process *, const struct cm_event *);

#endif
