/* The packets of a reliable engine (RC, XRC) that are on their way. Called as engine.h says. */
#pragma once

#include "transport/engine/engine.h"
#include "wire/psn.h"

/* The number of packets that were sent and are not acknowledged, including the packets of READ responses. */
static inline uint32_t flight_outstanding(const struct engine *engine)
{
    int32_t distance = psn_distance(engine_next_psn(engine), engine->rc.requester.acked_psn);
    return distance > 0 ? (uint32_t)distance : 0;
}

/* The most packets that may be outstanding. */
static inline uint32_t flight_window(const struct engine *engine)
{
    return engine->rc.requester.congestion.window;
}
