/* The events of events.def as numbers. */
#pragma once

#include <stdint.h>

/* First the events that are counted by operation, then those with their own number, those counted by reason, refused
 * calls, disturbed calls, the connection manager's, and those that are not counted. */
enum event {
#define PACKETS(name, ...) EVENT_##name,
#include "events/events.def"
    EVENTS_OF_PACKETS,
    EVENTS_BEFORE_COUNTED = EVENTS_OF_PACKETS - 1,
#define COUNTED(name, ...) EVENT_##name,
#include "events/events.def"
    EVENTS_BEFORE_REASONS,
    EVENTS_BEFORE_REASONS_ = EVENTS_BEFORE_REASONS - 1,
#define REASONS(name, ...) EVENT_##name,
#include "events/events.def"
    EVENTS_BEFORE_REFUSALS,
    EVENTS_BEFORE_REFUSALS_ = EVENTS_BEFORE_REFUSALS - 1,
#define REFUSALS(name, ...) EVENT_##name,
#include "events/events.def"
    EVENTS_BEFORE_SCRIPTED,
    EVENTS_BEFORE_SCRIPTED_ = EVENTS_BEFORE_SCRIPTED - 1,
#define SCRIPTED(name, ...) EVENT_##name,
#include "events/events.def"
    EVENTS_BEFORE_MESSAGES,
    EVENTS_BEFORE_MESSAGES_ = EVENTS_BEFORE_MESSAGES - 1,
#define MESSAGES(name, ...) EVENT_##name,
#define EVENT(name, ...) EVENT_##name,
#include "events/events.def"
    EVENT_KINDS
};
