/* Two doors of a reliable engine (engine.h) where each instruction counts: inlined into the caller with their usual
 * work. */
#pragma once

#include "transport/engine/engine.h"
#include "transport/rc/receive.h"
#include "transport/rc/responses.h"

/* Takes a packet as engine_receive does, for RC and XRC; not for a CNP. */
static inline void engine_receive_reliable(struct engine *engine, const struct packet *packet, nanos now)
{
    receive_packet(&engine->rc, packet, now);
}

/* Writes the ACK of engine_owes_one_ack, which counts as sent then. `service` is the settings', for callers that
 * know it as a constant. */
static inline void engine_transmit_ack(struct engine *engine, enum service service, struct packet *out)
{
    responses_transmit_ack(&engine->rc, service, out);
}
