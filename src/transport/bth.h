/* What is the same in every packet of a queue pair. */
#ifndef TRANSPORT_BTH_H
#define TRANSPORT_BTH_H

#include "transport/rc/rc.h"

/* Writes the BTH's values and an empty payload; the rest of *out is left as it was, for speed. */
static inline void bth_fill(struct packet *out, uint8_t opcode, uint16_t pkey, uint32_t destination, uint32_t psn)
{
    out->bth[0] = (uint32_t)opcode << 24 | PACKET_MIGRATED | pkey;
    out->bth[1] = destination & 0xffffff;
    out->bth[2] = psn & 0xffffff;
    out->grh = 0;
    out->payload = (struct payload){0};
}

static inline void bth_write(const struct rc *rc, struct packet *out, enum operation operation, uint32_t psn)
{
    const struct rc_settings *settings = &rc->settings;
    bth_fill(out, op_code(settings->service, operation), settings->pkey, settings->destination, psn);
}

#endif
