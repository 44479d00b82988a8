/* Two doors of a reliable engine (engine.h) where each instruction counts: inlined into the caller with all that they
 * usually do. */
#ifndef TRANSPORT_ENGINE_INLINED_H
#define TRANSPORT_ENGINE_INLINED_H

#include "transport/engine/engine.h"
#include "transport/rc/receive.h"
#include "transport/rc/responses.h"

/* As engine_receive, of RC and XRC; no CNP. */
static inline void engine_receive_reliable(struct engine *engine, const struct packet *packet, nanos now)
{
    receive_packet(&engine->rc, packet, now);
}

/* Where engine_owes_one_ack: that ACK, which has left then. `service` is that of the settings, for callers that know it
 * as a constant. */
static inline void engine_transmit_ack(struct engine *engine, enum service service, struct packet *out)
{
    responses_fill_ack(&engine->rc, service, out);
    responses_acknowledged(&engine->rc.responder);
}

#endif
