/* The fields that are the same in every packet of a queue pair. */
#pragma once

#include "transport/pkey.h"
#include "transport/settings.h"
#include "wire/packet.h"

/* Writes the words of a BTH at once, with PACKET_SOLICITED and PACKET_ACK_REQUESTED if they are in `flags`: a later
 * store of one byte of a word would hold up the code that reads the whole word. */
static inline void bth_words(struct packet *out, uint8_t opcode, uint16_t pkey, uint32_t destination, uint32_t psn,
                             uint32_t flags)
{
    out->bth[0] = (uint32_t)opcode << 24 | PACKET_MIGRATED | pkey | (flags & PACKET_SOLICITED);
    out->bth[1] = destination & 0xffffff;
    out->bth[2] = (psn & 0xffffff) | (flags & PACKET_ACK_REQUESTED);
}

/* Writes the BTH's values and an empty payload; the rest of *out is not written, for speed. */
static inline void bth_fill(struct packet *out, uint8_t opcode, uint16_t pkey, uint32_t destination, uint32_t psn)
{
    bth_words(out, opcode, pkey, destination, psn, 0);
    out->grh = 0;
    out->payload = (struct payload){0};
}

/* Checks an arrived packet's BTH: REASON_NONE, or why it is dropped. `receiving` and `failed` are the engine's. */
static inline enum reason bth_check(const struct engine_settings *settings, enum service service, bool receiving,
                                    bool failed, const struct packet *packet)
{
    if (!op_find(packet->opcode))
        return REASON_PACKET_OPCODE;
    if (op_service(packet->opcode) != service)
        return REASON_PACKET_SERVICE;
    if (!receiving || failed)
        return REASON_PACKET_QP_STATE;
    return pkey_matches(packet->pkey, settings->pkey) ? REASON_NONE : REASON_PACKET_PKEY;
}

static inline void bth_write(const struct engine_settings *settings, struct packet *out, enum operation operation,
                             uint32_t psn)
{
    bth_fill(out, op_code(settings->service, operation), settings->pkey, settings->destination, psn);
}
