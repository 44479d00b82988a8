/* What the responder owes: ACK, NAK, READ responses, atomic answers; kept for repeats, pulled in the order of PSNs. */
#ifndef TRANSPORT_RC_ANSWERS_H
#define TRANSPORT_RC_ANSWERS_H

#include "transport/rc/rc.h"

static inline bool answers_due(const struct rc *rc)
{
    const struct responder *responder = &rc->responder;
    return responder->ack_due || responder->nak_due || responder->saved_next != responder->saved_tail;
}

bool answers_transmit(struct rc *, struct packet *out, struct iovec *pieces);

/* XRC: the SRQ that the next receive and the next memory belong to. REASON_NONE for other services. */
enum reason answers_select_srq(struct rc *, uint32_t number);

/* The READ response with this PSN, just given, could not be read. */
void answers_unreadable(struct rc *, uint32_t psn);

/* An ACK up to this PSN, absorbed by one that is due for a later PSN. */
void answers_acknowledge(struct rc *, uint32_t psn);

/* A NAK for this PSN; it acknowledges all before. */
void answers_refuse(struct rc *, uint8_t syndrome, uint32_t psn);

/* Is there room to keep one more READ or atomic? Not when the peer has more outstanding than max_dest_rd_atomic. */
bool answers_have_room(struct rc *);

/* Keeps a READ or atomic that is to be answered; the caller fills in operands. answers_have_room must hold. */
struct rc_saved *answers_save(struct rc *, const struct packet *, uint32_t packets);

/* The kept READ or atomic whose answer has this PSN, the latest first; NULL: none. */
struct rc_saved *answers_find(struct rc *, uint32_t psn);

/* Answers again: packets [start, stop) of the whole answer, which end at byte `until` of it. */
void answers_repeat(struct rc *, struct rc_saved *, uint32_t start, uint32_t stop, uint32_t until);

/* The most that an ACK for a repeated request at `psn` may acknowledge: not the answer of a READ or atomic behind it.
 */
uint32_t answers_acknowledgeable(const struct rc *, uint32_t psn);

#endif
