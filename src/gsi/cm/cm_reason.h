/* Why an event of the connection manager reports a failure, for `softverbs explain`. */
#pragma once

#include "cm/events.h"

struct process;

/* The reason of an event with this status; REASON_NONE: the event reports no failure. */
enum reason cm_reason(enum cm_event_kind, int status);

/* Logs the reason of an event that reports a failure, and nothing for other events. Thread-safe; the caller holds no
 * lock. */
void cm_reason_log(const struct process *, const struct cm_event *);
