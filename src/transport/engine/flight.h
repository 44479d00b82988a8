/* How many packets of a reliable engine are on their way: of RC and XRC alone. As engine.h. */
#ifndef TRANSPORT_ENGINE_FLIGHT_H
#define TRANSPORT_ENGINE_FLIGHT_H

#include "transport/engine/engine.h"
#include "wire/psn.h"

/* Packets that were sent and are not acknowledged, those of READ responses among them. */
static inline uint32_t flight_outstanding(const struct engine *engine)
{
    int32_t distance = psn_distance(engine_next_psn(engine), engine->rc.requester.acked_psn);
    return distance > 0 ? (uint32_t)distance : 0;
}

/* How many may be. */
static inline uint32_t flight_window(const struct engine *engine)
{
    return engine->rc.requester.congestion.window;
}

#endif
