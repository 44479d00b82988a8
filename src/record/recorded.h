/* An engine whose doors are recorded. Each function here does what the engine_ function of the same name does
 * (transport/engine/engine.h), under the same lock, and appends to the recording the inputs, the owner's answers and
 * the engine's actions. The engine gets an owner that forwards all calls. */
#pragma once

#include "base/likely.h"
#include "transport/engine/engine.h"

struct recorded;

/* Begins to record an engine that is not initialized yet. The owner must have its operations when the engine is
 * initialized; `number` points to the queue pair's number. NULL: no memory. */
struct recorded *recorded_begin(struct engine *, struct engine_owner *, const uint32_t *number);
/* Ends the recording of a queue pair that is destroyed. */
void recorded_end(struct recorded *);

/* Most programs record nothing, so these functions are not inlined. */
#define SELF struct recorded *recorded
#define DOOR(type, name, record, service, parameters, ...) cold type recorded_##name parameters;
#define DOOR_APART DOOR
#include "transport/engine/doors.def"
