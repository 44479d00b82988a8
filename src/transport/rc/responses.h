/* The answers that the responder owes (ACK, NAK, READ responses, atomic answers), which are sent in the order of PSNs,
 * and the results that it keeps for repeated requests. */
#pragma once

#include "transport/bth.h"
#include "transport/rc/acks.h"
#include "transport/rc/rc.h"
#include "wire/psn.h"

static inline bool responses_due(const struct rc *rc)
{
    const struct responder *responder = &rc->responder;
    return responder->ack_due || responder->nak_due || responder->saved_next != responder->saved_tail;
}

static inline void responses_write_aeth(struct packet *out, uint8_t syndrome, uint32_t msn)
{
    out->syndrome = syndrome;
    out->msn = msn & PSN_MASK;
}

/* Writes the ACK that is due, which counts as sent then. `service` is settings.service; a caller that knows it passes a
 * constant. */
static inline void responses_transmit_ack(struct rc *rc, enum service service, struct packet *out)
{
    const struct engine_settings *settings = &rc->settings;
    struct responder *responder = &rc->responder;
    bth_fill(out, op_code(service, OPERATION_ACKNOWLEDGE), settings->pkey, settings->destination, responder->ack_psn);
    responses_write_aeth(out, SYNDROME_ACK, responder->msn);
    responder->ack_due = false;
    responder->ack_late = responder->ack_late && psn_distance(responder->late_psn, responder->ack_psn) > 0;
}

bool responses_transmit(struct rc *, struct packet *out, struct iovec *pieces);

/* XRC: selects the SRQ to which the next receive and memory belong. Other services: REASON_NONE. */
enum reason responses_select_srq(struct rc *, uint32_t number);

/* Reports that the memory of the READ response with this PSN, the last one that was transmitted, could not be read. */
void responses_unreadable(struct rc *, uint32_t psn);

/* Owes a NAK for this PSN, which acknowledges all requests before it. */
void responses_nak(struct rc *, uint8_t syndrome, uint32_t psn);

/* Returns true if one more READ or atomic can be kept. False when the peer has more outstanding than
 * max_dest_rd_atomic. */
bool responses_have_room(struct rc *);

/* Keeps a READ or atomic that has to be responded to; the caller fills in operands. responses_have_room must hold. */
struct responder_resource *responses_save(struct rc *, const struct packet *, uint32_t packets);

/* The latest kept READ or atomic whose response has this PSN; or NULL. */
struct responder_resource *responses_find(struct rc *, uint32_t psn);

/* Retransmits packets [start, stop) of the whole response, which end at byte `until` of it. */
void responses_retransmit(struct rc *, struct responder_resource *, uint32_t start, uint32_t stop, uint32_t until);

/* The last PSN that an ACK for a repeated request at `psn` may acknowledge: before the response of the next READ or
 * atomic. */
uint32_t responses_acknowledgeable(const struct rc *, uint32_t psn);
