/* Two doors of a reliable engine (engine.h) for callers where each instruction counts: the usual part of their work is
 * inlined. */
#pragma once

#include "transport/engine/engine.h"
#include "transport/rc/receive.h"
#include "transport/rc/responses.h"

/* Takes a packet as engine_receive does, for RC and XRC; not for a CNP. */
static inline void engine_receive_reliable(struct engine *engine, const struct packet *packet, nanos now)
{
    receive_packet(&engine->rc, packet, now);
}

/* Writes the ACK of engine_owes_one_ack, which counts as sent then. `service` is settings.service; a caller that knows
 * it passes a constant. */
static inline void engine_transmit_ack(struct engine *engine, enum service service, struct packet *out)
{
    responses_transmit_ack(&engine->rc, service, out);
}
